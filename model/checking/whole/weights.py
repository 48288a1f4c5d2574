"""Trials of what a model is made of: its softmax and scale, positions, layers, gradients and
output."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from headlight.model.checking.whole.patient import Patient, most, share
from headlight.model.checking.whole.reader import TEXT, tensor_of
from headlight.model.checking.whole.result import Finding, cannot_say, fails, right
from headlight.model.checking.whole.seeing import SHARE_BATCH
from headlight.model.checking.whole.watching import DECODER, SELF, UNMASK, place, watching

RATIO = 12.0, 1 / 6  # of tokens to positions: much more, or less, drowns one of them
NO_GRADIENT = 1e-30
CLOSE = 1e-3  # of factors
MANY = 0.1  # of the logits
NORM = re.compile("[Nn]orm|^LN|R[Mm][Ss]")  # in the names of classes
LARGE = 1e4  # an input of norms
RATE = 0.1  # of two steps from zero
ALIKE = 0.4  # the least cosine of neighbouring positions
SUMS = 1e-4  # of probabilities, from 1
MOST_TRIED = 64  # modules
SHOWN = 4  # names in a sentence


def _listed(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "") + "."


def softmax_axis(p: Patient) -> Finding:
    """The softmax runs over the keys."""
    title, events = "The softmax", p.watch().attended
    if not events:
        return cannot_say(
            title, "No softmax over scores was seen: it is written by hand, or fused."
        )
    for each in events:
        if each.axis != -1 and "mixes values" in each.uses:
            case = f"It runs over axis {each.axis} of (…, query, key)."
            return fails(title, "softmax over the wrong axis", case, where=each.where)
    return right(title, f"{len(events)} of them, each over the keys.")


def scale(p: Patient) -> Finding:
    """Scores are q·k, divided by √d."""
    title = "The scale of scores"
    first = next((a for a in p.watch().attended if a.factor and a.d > 1), None)
    if first is None or not first.factor:
        return cannot_say(title, "The product of queries and keys was not seen.")
    d, root = first.d, first.d**0.5
    ratio = first.factor * root  # 1 is right
    if abs(ratio - 1) < CLOSE:
        return right(title, f"Divided by √{d}.")
    case = f"Scores are {first.factor:.3g} times q·k, where d is {d}."
    for name, other in (("√d left out", root), ("divided by d", 1 / root), ("multiplied by √d", d)):
        if abs(ratio / other - 1) < CLOSE:
            return fails(title, name, case, where=first.where)
    widths = {m.embedding_dim for m in p.model.modules() if isinstance(m, nn.Embedding)}
    if any(abs(d / ratio**2 - width) < CLOSE for width in widths):
        return fails(title, "√d_model", case, where=first.where)
    return right(title, f"{case[:-1]}: a scale of its own.")


def positions(p: Patient) -> list[Finding]:
    """When two tokens change places, rows do not merely change places with them. Of causal
    attention, with its mask taken off."""
    title = "The order of tokens"
    if p.alone:
        return [cannot_say(title, SHARE_BATCH)]
    found = [_source_positions(p, f"{title} in the source")] if p.pair else []
    title += " in the target" if p.pair else ""
    is_text = p.reader.kind == TEXT
    mends = () if is_text else (UNMASK,)
    swap = _swap(p.read.shape[1])
    try:
        base, swapped = p.written(p.read, *mends), p.written(p.read[:, swap], *mends)
        is_open = is_text or float(p.influence(p.own_side, *mends).triu(1).max()) > p.least
    except Exception:  # of the model
        return [*found, cannot_say(title, "Without its mask the model fails.")]
    if not is_open:
        return [*found, cannot_say(title, "Its causal mask could not be taken off.")]
    if most(base, swapped if base.shape[1] == 1 else swapped[:, swap]) > p.least:
        return [*found, right(title, "Two tokens that change places change the rest.")]
    case = "When two tokens change places, rows only change places with them."
    name = "text without positions" if is_text else "target without positions"
    return [*found, fails(title, name, case)]


def _swap(length: int) -> torch.Tensor:
    order = torch.arange(length)
    order[1], order[2] = 2, 1
    return order


def _source_positions(p: Patient, title: str) -> Finding:
    if float(p.influence(0).max()) < p.least:
        return cannot_say(title, "The source is not read.")
    gap = most(p.base(), p.run(p.src[:, _swap(p.src.shape[1])], p.tgt))
    if gap < p.least:
        case = "When two tokens change places, no row moves."
        return fails(title, "source without positions", case)
    return right(title, f"When two tokens change places, the output moves {share(gap)}.")


def length(p: Patient, longest: int) -> Finding:
    """Texts of `longest` tokens can be read."""

    def fits(n: int) -> bool:
        src, read = (ids[:, torch.arange(n) % ids.shape[1]] for ids in (p.src, p.read))
        try:
            p.run(src, read)
        except Exception:  # of the model
            return False
        return True

    if fits(longest):
        return right("Length", f"It reads {longest} tokens.")
    low, high = p.src.shape[1], longest
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    case = f"It reads {low} tokens and fails at {low + 1}."
    return fails("Length", "too few positions", case)


def distances(p: Patient) -> Finding | None:
    """Where a token has the same row in every place, but for what its place does to its scores,
    these depend on the distance alone."""
    title, n = "Relative positions", p.read.shape[1]
    one, two = p.read[:, :1].expand(1, n), p.read[:, torch.arange(n) % 2]
    rows = p.written(one)
    if p.alone or rows.shape[1] < n or not rows.isfinite().all():
        return None
    if most(rows[:, :1].expand_as(rows), rows) > p.between:
        return None
    scores = []
    for read in (one, two):
        own = (p.watch(None, read) if p.pair else p.watch(read)).of_kind(DECODER, SELF)
        if not own or own[0].scores.shape[-1] != n:
            return None
        some = own[0].scores.double()
        scores.append(some - some.diagonal(dim1=1, dim2=2)[..., None])
    near = CLOSE * max(float(each.tril().abs().max()) for each in scores)
    if near == 0:
        return None
    steps = scores[0][:, -1].flip(-1)  # (text and head, distance)
    if bool((steps[:, 1] > near).all()):
        even = steps[:, 1:2] * torch.arange(n)
        if float((steps - even).abs().max()) < near:
            case = f"With each token, a score grows by {float(steps[:, 1].max()):.2g}."
            return fails(title, "bias favours the far", case)
    gap = (scores[1][:, 2:, 2:] - scores[1][:, :-2, :-2]).tril().abs().max()
    if float(gap) > near:
        case = "The same two tokens, moved two places along, get a different score."
        return fails(title, "no rotation", case)
    return right(title, "Scores depend on the distance of two tokens alone.")


@torch.no_grad()
def norms(p: Patient) -> Finding | None:
    """A norm reads one row at a time, and gives the same for twice as much."""
    title, seen = "Norms", dict[nn.Module, Tensor]()

    def keep(module: nn.Module, args: tuple, out: Any) -> None:
        if len(args) == 1 and isinstance(out, Tensor) and args[0].shape == out.shape:
            seen.setdefault(module, args[0])

    names = {
        m: n
        for n, m in p.model.named_modules()
        if NORM.search(type(m).__name__)
        and not isinstance(m, nn.modules.batchnorm._BatchNorm)
        and not [*m.children()]
    }
    hooks = [module.register_forward_hook(keep) for module in names]
    try:
        p.base()
    finally:
        for hook in hooks:
            hook.remove()
    for module, x in seen.items():
        other = x.clone()
        other[:, -1] += 1
        rows = [module(each)[:, :-1] for each in (x, other)]
        if x.ndim == 3 and x.shape[1] > 1 and most(*rows) > p.between:
            case = f"{names[module]} gives other rows when the last one changes."
            return fails(title, "norm over the wrong axis", case)
        much = LARGE * x / x.abs().amax(-1, keepdim=True)  # so that ε is nothing
        if most(module(much).flatten(0, -2)[None], module(2 * much).flatten(0, -2)[None]) > CLOSE:
            case = f"So does {names[module]}."
            return fails(title, "norm of the wrong size", case)
    return right(title, "Each norms one row at a time.") if seen else None


def feed_forward(p: Patient) -> Finding:
    """Between the two linear layers of a feed-forward there is something else."""
    title, seen = "Feed-forward", p.watch()
    if seen.straight:
        return fails(title, "no activation in the feed-forward", where=seen.straight)
    return right(title, "No two linear layers follow each other.")


@torch.enable_grad()
def with_loss(p: Patient) -> Finding | None:
    """A model that makes its loss compares a row with a token that the row has not read. Which one
    is seen by the gradient at its logits."""
    title, reader = "Its loss", p.reader
    if (made_loss := reader.with_loss) is None or p.alone:
        return None
    p.model.requires_grad_(True)  # it is a copy

    def slopes(src: Tensor, tgt: Tensor | None) -> Tensor:
        """Of the loss, for each logit: (row, vocabulary)."""
        out = made_loss(src, tgt, torch.ones_like(src, dtype=torch.bool))
        values = out.values() if isinstance(out, Mapping) else getattr(out, "__dict__", out)
        values = values.values() if isinstance(values, Mapping) else values
        loss = next(x for x in values if isinstance(x, Tensor) and x.ndim == 0)
        found = torch.autograd.grad(loss, tensor_of(out))[0]
        return found.reshape(-1, found.shape[-1])

    try:
        with watching(p.model, (p.src.shape[1], p.read.shape[1])) as watch:
            found = slopes(p.src, p.tgt)
    except Exception:  # of the model, called in a way that it does not know
        return None
    if watch.seen.twice:
        return fails(title, "softmax twice")
    if p.tgt is not None and reader.pad is not None:
        tgt = torch.cat([p.tgt[:, :-1], torch.full_like(p.tgt[:, :1], reader.pad)], 1)
        if float(slopes(p.src, tgt)[-1].abs().max()) > NO_GRADIENT:
            case = "The row that is to predict padding has a gradient."
            return fails(title, "loss counts padding", case)
    text = p.read[0].tolist()
    by = {text.index(int(row.argmin())) - i for i, row in enumerate(found)
          if float(row.abs().max()) > NO_GRADIENT and int(row.argmin()) in text}  # fmt: skip
    if len(by) != 1 or len({*text}) < len(text):
        return None
    shift, told = by.pop(), "the token that it reads"
    if shift:
        told = f"the token {abs(shift)} {'after' if shift > 0 else 'before'} the one that it reads"
    case = f"Its loss compares each row with {told}."
    if shift < 0:
        return fails(title, "target shifted backwards", case)
    if shift > 1:
        return fails(title, "shifted twice", case)
    if shift == 0 and p.pair and not reader.shifts:
        return fails(title, "target not shifted", case)
    return right(title, case)


@torch.enable_grad()
def gradients(p: Patient) -> list[Finding]:
    """Every weight in use is a parameter, and gets a gradient."""
    title, model = "Gradients", p.model
    named = dict(model.named_parameters())
    frozen = [n for n, each in named.items() if not each.requires_grad and "pos" not in n.lower()]
    frozen = frozen if len(frozen) < len(named) else []  # or the model is only run
    if not named:
        return []
    model.requires_grad_(True)  # it is a copy
    lengths = p.src.shape[1], p.read.shape[1]
    texts = (p.src, p.tgt) if p.alone else p.both()

    def slopes() -> dict[str, Tensor]:
        """Of every weight, for some sum of the logits; none where it is detached from all."""
        out = p.reader(*texts)
        if not out.requires_grad:
            return {}
        draw = torch.Generator().manual_seed(1)
        weights = torch.randn(out.shape, generator=draw, dtype=torch.float64).to(out)
        loss = (out * weights).nan_to_num().sum()
        found = torch.autograd.grad(loss, [*named.values()], allow_unused=True)
        pairs = zip(named.items(), found, strict=True)
        return {n: torch.zeros_like(each) if g is None else g for (n, each), g in pairs}

    with watching(model, lengths, mends=p.mends) as watch:
        grads = slopes()
    if not grads:
        return [fails(title, "weights without gradient", "The output is detached from all.")]
    dead = {n for n, g in grads.items() if float(g.abs().max()) < NO_GRADIENT}
    alive = {n.rpartition(".")[0] for n in named if n not in dead}
    lost = [n for n in named if n in dead
            and (named[n].ndim > 1 or n.rpartition(".")[0] not in alive)]  # fmt: skip
    found = []
    if foreign := watch.seen.foreign:
        count = len({id(weight) for weight, _ in foreign})
        case = f"{count} weights are no parameters of the model."
        found.append(fails(title, "layers not registered", case, where=foreign[0][1]))
    if stay := _that_stay(p, [n for n in p.zeros if n not in dead], slopes):
        found.append(fails(title, "zeros that stay", _listed(stay)))
    found += _without_gradient(p, lost, [*named])
    for name, g in grads.items():
        if name not in dead and place(named[name]) in watch.seen.matrices:
            found += _part_without(p, name, g)
    if frozen:
        found.append(fails(title, "frozen", _listed(frozen)))
    return found or [right(title, f"All {len(named)} weights get one.")]


def _that_stay(p: Patient, zeros: list[str], slopes: Callable[[], dict[str, Tensor]]) -> list[str]:
    """Those of `zeros` that get no gradient in two steps from zero."""
    if not zeros:
        return []
    named = dict(p.model.named_parameters())
    kept = {n: each.detach().clone() for n, each in named.items()}
    with torch.no_grad():
        for name in p.zeros:
            named[name].zero_()
    for _ in range(2):
        found = slopes()
        with torch.no_grad():
            for name, g in found.items():
                named[name].sub_(RATE * g)
    stay = [name for name in zeros if not named[name].any()]
    with torch.no_grad():
        for name, was in kept.items():
            named[name].copy_(was)
    return stay


def _part_without(p: Patient, name: str, grad: Tensor) -> list[Finding]:
    """Neighbouring rows or columns of a matrix that no output depends on, as those of a head that
    nobody reads."""
    for axis in (0, 1)[: grad.ndim]:
        idle = (grad.abs().transpose(0, axis).flatten(1).amax(1) < NO_GRADIENT).nonzero().flatten()
        if len(idle) < max(4, len(grad.transpose(0, axis)) / 8):
            continue
        first, last = int(idle[0]), int(idle[-1])
        if last - first + 1 > len(idle):
            continue
        weight = p.model.get_parameter(name)
        before, was = p.base(), weight.detach().clone()
        with torch.no_grad():
            weight.transpose(0, axis)[first : last + 1] += 0.1
            after = p.base()
            weight.copy_(was)
        if most(before, after) < p.least:
            what = "columns" if axis else "rows"
            case = f"{what.capitalize()} {first + 1} to {last + 1} of {name}."
            return [fails("Gradients", "weights without effect", case)]
    return []


def _without_gradient(p: Patient, dead: list[str], names: list[str]) -> list[Finding]:
    """Of weights that get no gradient: those that change the output all the same were cut off; of
    the others whole layers may have no effect."""
    title, parts = "Gradients", sorted({n.rpartition(".")[0] or n for n in dead})
    if not parts:
        return []
    if cut := [part for part in parts[:MOST_TRIED] if _moves(p, part, dead)]:
        return [fails(title, "weights without gradient", "No gradient in " + _listed(cut))]
    attend = [each.module for each in p.watch().attended]
    stacks: dict[str, dict[str, list[str]]] = {}
    for name in names:
        if found := re.match(r"(.*?)\.\d+(?=\.)", name):
            stacks.setdefault(found[1], {}).setdefault(found[0], []).append(name)
    for stack, layers in stacks.items():
        if not any(each.startswith(f"{stack}.") for each in attend):
            continue  # heads for other tasks, experts that were not chosen
        idle = [layer for layer, weights in layers.items() if {*weights} <= {*dead}]
        case, is_last = (
            f"Without effect: {_listed(idle)}",
            idle == [*layers][len(layers) - len(idle) :],
        )
        if idle and is_last and p.pair and re.search(r"(^|\.)enc|encoder", stack):
            return [fails(title, "memory of the wrong layer", case)]
        if idle and is_last and len(idle) < len(layers):
            return [fails(title, "last layers left out", case)]
        if idle and idle == [*layers][:-1]:
            return [fails(title, "layers not chained", case)]
    return [fails(title, "weights without effect", _listed(parts))]


@torch.no_grad()
def _moves(p: Patient, part: str, dead: list[str]) -> bool:
    """Whether other weights there change the output."""
    before = p.base()
    owners = {
        id(weight): module for module in p.model.modules() for weight in module.parameters(False)
    }
    some = [each for name, each in p.model.named_parameters()
            if name in dead and (name.rpartition(".")[0] or name) == part]  # fmt: skip
    kept = [each.clone() for each in some]
    for each, was in zip(some, kept, strict=True):
        each.mul_(1.5).add_(0.1)
        if (row := getattr(owners[id(each)], "padding_idx", None)) is not None:
            each[row] = was[row]  # which is not to learn
    after = p.base()
    for each, was in zip(some, kept, strict=True):
        each.copy_(was)
    return most(before, after) > p.least


def shared_layers(p: Patient) -> Finding:
    """No layer stands in two places."""
    title, seen = "Layers of their own", dict[nn.Module, str]()
    for name, module in p.model.named_modules(remove_duplicate=False):
        stack, _, last = name.rpartition(".")
        if not last.isdigit() or not any(True for _ in module.parameters()):
            continue
        if seen.setdefault(module, name) != name and seen[module].rpartition(".")[0] == stack:
            return fails(title, "one layer, many times", f"{seen[module]} is {name}.")
    return right(title, "No layer stands in two places.")


def sizes_of_inputs(p: Patient) -> list[Finding]:
    """Tokens and positions are of about one size, and the output layer reads a norm."""
    title, seen = "Tokens and positions", p.watch(output=p.base().shape[-1])
    found = []
    if ratios := seen.tokens_to_positions:
        worst = max(ratios, key=lambda r: max(r, 1 / max(r, 1e-9)))
        case = f"Token vectors are {worst:.2g} times as large as positions."
        if worst > RATIO[0]:
            found.append(fails(title, "positions drowned by tokens", case))
        elif worst < RATIO[1]:
            found.append(fails(title, "tokens drowned by positions", case))
        else:
            found.append(right(title, case))
    for each in (x.squeeze() for x in seen.positions):
        d = each.shape[-1]
        if each.ndim == 2 and d % 2 == 0 and float(each.abs().max()) > 0:
            even, odd = each[:, ::2], each[:, 1::2]
            if torch.equal(even, odd) or not odd.any():
                found.append(fails(title, "sines without cosines"))
        if each.ndim == 2 and float((each.pow(2).sum(-1) - d / 2).abs().max()) < CLOSE * d:
            alike = float((each[1:] * each[:-1]).sum(-1).mean()) / (d / 2)  # of sines and cosines
            if alike < ALIKE:
                case = f"The mean cosine of two neighbours is {alike:.2g}."
                found.append(fails(title, "frequencies grow", case))
    if seen.bare_sum and seen.is_normed:
        found.append(fails("The last norm", "final norm missing", where=seen.bare_sum))
    return found


def outputs(p: Patient) -> Finding:
    """Logits or log-probabilities, not probabilities."""
    out = p.base().double()
    is_shared = float((out.sum(-1) - 1).abs().max()) < SUMS and float(out.min()) >= 0
    over_rows = [float((x.sum(1) - 1).abs().max()) < SUMS for x in (out, out.exp())]
    if out.shape[1] > 1 and any(over_rows) and not is_shared:
        return fails("Its output", "softmax over the wrong axis", "It runs over the rows.")
    if out.shape[-1] > 1 and is_shared:
        return fails("Its output", "returns probabilities", "Each row sums to 1.")
    if float(out.min()) == 0 and float((out == 0).double().mean()) > MANY:
        return fails("Its output", "activation on the logits", "Many are exactly 0.")
    first, even = float((out.logsumexp(-1) - out.mean(-1)).mean()), math.log(out.shape[-1])
    gains = [each for m in p.model.modules() if NORM.search(type(m).__name__)
             for name, each in m.named_parameters(recurse=False) if "bias" not in name]  # fmt: skip
    is_new = bool(gains) and all(bool(gain.eq(1).all()) for gain in gains)
    if is_new and p.reader.kind != TEXT and first > 1.5 * even + 0.5:
        case = f"Before training it would lose {first:.3g}; ln {out.shape[-1]} is {even:.3g}."
        return fails("Its output", "loss does not start at ln V", case)
    is_log = float(out.logsumexp(-1).abs().max()) < SUMS
    return right("Its output", "Log-probabilities." if is_log else "Logits, or hidden states.")


def tied(p: Patient, said: bool) -> Finding | None:
    """Embedding and output layer share their weights, where that is `said`."""
    title, modules = "Shared weights", [*p.model.modules()]
    tables = [each.weight for each in modules if isinstance(each, nn.Embedding)]
    layers = [each.weight for each in modules if isinstance(each, nn.Linear)]
    if any(one is other for one in tables for other in layers):
        return right(title, "Embedding and output layer are one matrix.")
    if any(torch.equal(one, other) for one in tables for other in layers):
        return fails(title, "embeddings not tied", "They hold the same numbers in two places.")
    return fails(title, "embeddings not tied") if said else None
