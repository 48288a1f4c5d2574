"""Trials of what a model is made of: its softmax and scale, positions, layers, gradients and
output."""

import re

import torch
from torch import nn

from headlight.model.checking.whole.patient import Patient, most, share
from headlight.model.checking.whole.reader import TEXT
from headlight.model.checking.whole.result import Finding, cannot_say, fails, right
from headlight.model.checking.whole.seeing import SHARE_BATCH
from headlight.model.checking.whole.watching import UNMASK, watching

RATIO = 12.0, 1 / 6  # of tokens to positions: much more, or less, drowns one of them
NO_GRADIENT = 1e-30
CLOSE = 1e-3  # of factors
MANY = 0.1  # of the logits
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
    with watching(model, lengths, mends=p.mends) as watch:
        out = p.reader(*texts)
    if not out.requires_grad:
        return [fails(title, "weights without gradient", "The output is detached from all.")]
    draw = torch.Generator().manual_seed(1)
    weights = torch.randn(out.shape, generator=draw, dtype=torch.float64).to(out)
    loss = (out * weights).nan_to_num().sum()
    grads = torch.autograd.grad(loss, [*named.values()], allow_unused=True)
    sizes = {n: 0.0 if g is None else float(g.abs().max())
             for n, g in zip(named, grads, strict=True)}  # fmt: skip
    alive = {n.rpartition(".")[0] for n, size in sizes.items() if size >= NO_GRADIENT}
    dead = [n for n, size in sizes.items() if size < NO_GRADIENT
            and (named[n].ndim > 1 or n.rpartition(".")[0] not in alive)]  # fmt: skip
    found = []
    if foreign := watch.seen.foreign:
        count = len({id(weight) for weight, _ in foreign})
        case = f"{count} matrices are no parameters of the model."
        found.append(fails(title, "layers not registered", case, where=foreign[0][1]))
    found += _without_gradient(p, dead, [*named])
    if frozen:
        found.append(fails(title, "frozen", _listed(frozen)))
    return found or [right(title, f"All {len(named)} weights get one.")]


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
    if seen.bare_sum and seen.is_normed:
        found.append(fails("The last norm", "final norm missing", where=seen.bare_sum))
    return found


def outputs(p: Patient) -> Finding:
    """Logits or log-probabilities, not probabilities."""
    out = p.base().double()
    is_shared = float((out.sum(-1) - 1).abs().max()) < SUMS and float(out.min()) >= 0
    if out.shape[-1] > 1 and is_shared:
        return fails("Its output", "returns probabilities", "Each row sums to 1.")
    if float(out.min()) == 0 and float((out == 0).double().mean()) > MANY:
        return fails("Its output", "activation on the logits", "Many are exactly 0.")
    is_log = float(out.logsumexp(-1).abs().max()) < SUMS
    return right("Its output", "Log-probabilities." if is_log else "Logits, or hidden states.")


def tied(p: Patient, said: bool) -> Finding | None:
    """Embedding and output layer share their weights, where that is `said`."""
    title, modules = "Shared weights", [*p.model.modules()]
    tables = {id(each.weight) for each in modules if isinstance(each, nn.Embedding)}
    if any(isinstance(each, nn.Linear) and id(each.weight) in tables for each in modules):
        return right(title, "Embedding and output layer are one matrix.")
    return fails(title, "embeddings not tied") if said else None
