"""Trials of what a row of the output depends on: its batch, the future, what came before, the
source. Each is judged by behaviour; what was seen on the way only gives a fault its name."""

import inspect
import re
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from headlight.model.checking.whole.patient import Patient, most, moved, share
from headlight.model.checking.whole.reader import CAUSAL, TEXT, tensor_of
from headlight.model.checking.whole.result import LOOK, Finding, cannot_say, fails, right
from headlight.model.checking.whole.watching import (
    CROSS,
    DECODER,
    DROPOUT,
    ENCODER,
    HIDDEN,
    ITSELF,
    NO_CAUSAL,
    NO_CROSS,
    NO_FEED,
    OFF,
    SELF,
    SPLIT,
    Attended,
    watching,
)

NONE = 1e-12  # a weight that is 0
TIMES = 4  # chance may agree once
CLEAR = 1e-9  # one that is not
NEAR = 1e-3  # of the largest weight: a mask that is too weak leaves less
OWN = DECODER, SELF  # attention within the text that is written on
MAKES_CACHE = re.compile("(new|make|init|create|empty|build|get|allocate|setup).*cache")
SHARE_BATCH = (
    "Texts of a batch see each other, so one text was tried alone and too little is known."
)


def numbers(p: Patient) -> Finding:
    """Without padding no logit is NaN."""
    out = p.base()
    if not out.isnan().any():
        return right("Numbers", f"Logits {tuple(out.shape)}, no NaN.")
    rows = [i + 1 for i, row in enumerate(out[0]) if row.isnan().any()]
    events = [a for a in p.watch().attended if a.weights.isnan().any()]
    name = "NaN"
    if events and events[0].kind in OWN:
        weights = events[0].weights
        empty = weights.isnan().any(-1)
        if int(empty.sum()) == 1 and empty[0] and float(weights[1:].triu(1).max()) < NONE:
            name = "without the diagonal"
        if int(empty.sum()) == 1 and empty[-1] and float(weights[:-1].tril().max()) < NONE:
            name = "True for False"
    case = f"Rows {rows} of a text without padding are NaN."
    return fails("Numbers", name, case, where=events[0].where if events else "")


def same_twice(p: Patient) -> Finding:
    """Calls in eval mode agree exactly."""
    title, first = "The same twice", p.base()
    if (gap := max(most(first, p.base()) for _ in range(TIMES))) == 0:
        return right(title, "Calls in eval mode agree exactly.")
    seen, case = p.watch(), f"They differ {share(gap)}."
    if seen.dropped and most(p.base(DROPOUT), p.base(DROPOUT)) < p.between:
        p.mends |= {DROPOUT}  # so that the other trials judge the rest
        return fails(title, "dropout in eval", case, where=seen.dropped[0])
    return fails(title, "random in eval", case, where=(seen.dropped + seen.random + [""])[0])


def own_text(p: Patient) -> Finding:
    """A text reads the same alone, first and last in a batch, whatever its neighbour."""
    title = "Its own text alone"
    neighbour, order = p.company()
    if max(neighbour, order) < p.between:
        return right(title, "A text reads the same alone, first and last in a batch.")
    case = (f"With another text beside it, it moves {share(neighbour)}; against alone, "
            f"{share(order)}.")  # fmt: skip
    if neighbour < p.between:
        p.alone = True
        return fails(title, "positions by batch", case)
    swapped = {module: name for name, module in p.model.named_modules()
               if isinstance(module, nn.MultiheadAttention) and not module.batch_first}  # fmt: skip
    for module in swapped:
        module.batch_first = True
    try:
        is_mended = bool(swapped) and max(p.company()) < p.between
    except Exception:  # of the model: masks of the shape that went with it
        is_mended = False
    if is_mended:  # and stays so: the other trials judge the rest
        return fails(title, "batch and length swapped", case, where=next(iter(swapped.values())))
    for module in swapped:
        module.batch_first = False
    p.alone = True
    with torch.no_grad(), watching(p.model, (2, 2)) as watch:  # attention of two texts
        p.reader(*p.both())
    if crosswise := [a.where for a in watch.seen.attended if len(a.weights) == 2]:
        where = crosswise[0]
        return fails(title, "batch and length swapped", case, where=where)
    return fails(title, "sees the batch", case)


def future(p: Patient) -> Finding:
    """No row moves when a later token changes."""
    title = "The future"
    found = p.influence(p.own_side)
    n, later = len(found), found.triu(1)
    expected = torch.ones(n, n).tril(-int(p.reader.shifts))
    matrix: dict[str, Tensor] = {"found": found, "expected": expected}
    if float(later.max()) < p.least:
        return right(title, f"No row moves when one of {n - 1} later tokens changes.", **matrix)
    row, token = divmod(int(later.argmax()), n)
    case = f"Row {row + 1} moves {share(float(later.max()))} when token {token + 1} changes."
    seen = p.watch()
    own = seen.of_kind(*OWN)
    where = (own[0].mask_at or own[0].where) if own else ""
    if p.pair and not seen.of_kind(ENCODER, CROSS) and float(p.influence(0).max()) < p.least:
        return fails(title, "encoder reads the target", case, where=where, **matrix)
    mended = p.influence(p.own_side, NO_CAUSAL)
    is_mended = float(mended.triu(1).max()) < p.least
    if is_mended and bool((mended > p.least * NEAR)[expected > 0].all()):
        matrix["mended"] = mended  # of an inverted mask too little would be left
    name = _name_of_leak(own, is_mended)
    if p.pair and not seen.of_kind(CROSS):
        name, own = "", []  # one of these is cross-attention of another shape
    if name == "causal mask missing in a layer":
        first = next(a for a in own if float(a.weights.triu(1).max()) > 0)
        where = f"{first.module or 'a layer'} ({first.where})"
    elif name in ("", "reads the future elsewhere"):
        other = p.others[p.own_side]
        assert other is not None
        changed = torch.cat([p.read[:, :-1], other[:, -1:]], 1)
        texts = (p.src, changed) if p.pair else (changed, None)
        if first := p.first_moved(*texts, n - 1, n):
            where = f"first seen in the output of {first}"
        name = "reads the future elsewhere" if first and own else "sees the future"
    return fails(title, name, case, where=where, **matrix)


def _name_of_leak(own: Sequence[Attended], is_mended: bool) -> str:
    """By the weights of self-attention, and by whether a causal mask mends it; "" if nothing
    does."""
    if not own:
        return ""
    leaks = [float(a.weights.nan_to_num().triu(1).max()) for a in own]
    if not any(leaks):
        return "reads the future elsewhere"
    leaky = next(i for i, leak in enumerate(leaks) if leak)
    weights = own[leaky].weights.nan_to_num()
    past = weights.tril(-1)
    if float(weights.diagonal()[:-1].max()) < CLEAR:
        return "True for False"
    if float(past[1:-1].max()) < CLEAR:
        return "rows for columns"
    if not is_mended:
        return ""
    if any("multiplied" in a.uses for a in own):
        return "zero after the softmax"
    if float(weights.triu(2).max()) < NONE:
        return "mask one too far"
    if any(a.weak for a in own) or float(weights.triu(1).max()) < NEAR * float(past.max()):
        return "mask too weak"
    if any(a.added or a.times for a in own):
        return "mask added as numbers" if any(a.added for a in own) else "scores times the mask"
    if float(weights[_later(weights)].min()) < NONE:
        return "causal mask with holes"
    hides = [float(a.weights.triu(1).max()) < NONE for a in own]
    hides += [bool((head[_later(head)] < HIDDEN).all()) for a in own for head in a.scores]
    return "causal mask missing in a layer" if any(hides) else "no causal mask"


def _later(weights: Tensor) -> Tensor:
    return torch.ones_like(weights, dtype=torch.bool).triu(1)


def _is_band(seen: Tensor, lower: bool) -> int:
    """How many tokens back, or to both sides, each row reaches, if all reach equally far; else
    0."""
    n = len(seen)
    far = torch.arange(n)[:, None] - torch.arange(n)
    counts = far > 0 if lower else torch.ones_like(seen)
    bands = (w for w in range(1, n) if bool((seen & counts == counts & (far.abs() <= w)).all()))
    return next(bands, 0)


def reach(p: Patient) -> Finding:
    """Each row depends on each token that it may read, or on as many as a window lets it."""
    writes = p.reader.kind != TEXT
    title = "What came before" if writes else "The whole text"
    found = p.influence(p.own_side)
    seen, expected = found > p.least * NEAR, torch.ones_like(found)
    matrix = {
        "found": found,
        "expected": expected.tril(-int(p.reader.shifts)) if writes else expected,
    }
    is_square = len(found) == found.shape[1]
    asked = matrix["expected"] > 0
    if is_square:
        asked.fill_diagonal_(False)
    if bool(seen[asked].all()):
        which = "all tokens before it" if writes else "each token"
        return right(title, f"Each row depends on {which}.", **matrix)
    if is_square and (band := _is_band(seen, lower=writes)):
        how = f"reaches {band} tokens back" if writes else "sees its neighbours"
        return right(title, f"Each row {how}: a window.", **matrix)
    if p.alone:
        return cannot_say(title, SHARE_BATCH, **matrix)
    if is_square and not bool(seen[asked].any()):
        where = (*p.watch().over_heads, "")[0]
        hides = [float(a.weights.nan_to_num().max()) < NONE for a in p.watch().of_kind(*OWN)]
        name = "attention over the heads" if where else "reads nothing before"
        name = "True for False" if hides and all(hides) else name
        case = "No row moves when another token changes."
        return fails(title, name, case, where=where, **matrix)
    if is_square and not writes and not bool(seen.triu(1).any()):
        case = "No row moves when a later token changes."
        return fails(title, "causal mask in an encoder", case, **matrix)
    row, token = (asked & ~seen).nonzero()[0].tolist()
    case = f"Row {row + 1} does not move when token {token + 1} changes."
    return fails(title, "reads a part of what came before", case, **matrix)


def source(p: Patient) -> Finding:
    """Each source token moves some row of the target."""
    title = "The source"
    found = p.influence(0)
    reached = (found > p.least * NEAR).any(0)
    matrix = {"found": found, "expected": torch.ones_like(found), "axes": ("row", "source token")}
    if bool(reached.all()):
        own = [each.weights for each in p.watch().of_kind(ENCODER)]
        if own and all(float(x.triu(1).max()) < NONE < float(x.tril(-1).max()) for x in own):
            case = "No source token attends to a later one."
            return fails(title, "causal mask in an encoder", case, **matrix)
        found = p.influence(0, ITSELF)  # now source token j stands in row j of the memory alone
        seen = (found > p.least * NEAR).int()
        if len(seen) > 1 and (seen.sum(1).diff() == 1).all() and seen.diff(dim=1).max() <= 0:
            case = "With each source token read alone, each row reads one more than that before."
            return fails(title, "causal mask in cross-attention", case,
                         **{**matrix, "found": found})  # fmt: skip
        if not bool(seen.any(0).all()):
            case = "With each source token read alone, some of them change nothing."
            return fails(title, "reads a part of the source", case, **{**matrix, "found": found})
        return right(title, "Every source token changes the output.", **matrix)
    if not bool(reached.any()):
        events = p.watch().of_kind(CROSS)
        case = f"In {len(events)} steps the target attends to {len(reached)} source tokens."
        where = events[0].where if events else ""
        return fails(title, "never reads the source", case, where=where, **matrix)
    if p.alone:
        return cannot_say(title, SHARE_BATCH, **matrix)
    case = f"Source token {int((~reached).nonzero()[0]) + 1} changes nothing."
    return fails(title, "reads a part of the source", case, **matrix)


def diagonal(p: Patient) -> Finding | None:
    """In causal attention a token attends to itself, which a residual would hide."""
    events = p.watch().of_kind(*OWN)
    for each in events:
        weights = each.weights.nan_to_num()
        is_causal = float(weights[1:].triu(2).max()) < NONE < float(weights.diagonal(-1).min())
        if is_causal and float(weights.diagonal()[1:].max()) < NONE:
            name = "without the diagonal"
            return Finding("Its own token", LOOK, name, "No token does so.", where=each.where)
    return right("Its own token", "A token attends to itself.") if events else None


def prefix(p: Patient) -> Finding:
    """Rows are the same when fewer tokens follow, as in decoding."""
    title, n = "As in decoding", p.read.shape[1]

    whole = p.written(p.read)
    found = [most(whole[:, :k], p.written(p.read[:, :k])) for k in range(2, n)]
    if max(found) < p.between:
        return right(title, "Rows are the same when fewer tokens follow.")
    case = f"With {found.index(max(found)) + 2} of {n} tokens, rows move {share(max(found))}."
    return fails(title, "length changes rows", case)


@torch.no_grad()
def cached(p: Patient) -> Finding | None:
    """A text in two steps, the second with the cache of the first: the same rows."""
    if p.reader.kind != CAUSAL or p.reader.length_first:
        return None
    parameters, cut = inspect.signature(p.model.forward).parameters, p.src.shape[1] - 3
    name = next((n for n in parameters if re.search("cache$|past", n) and n != "use_cache"), "")
    use = {"use_cache": True} if "use_cache" in parameters else {}
    makers = [each for name in dir(p.model) if MAKES_CACHE.match(name)
              and inspect.ismethod(each := getattr(p.model, name))]  # fmt: skip
    ids = next(iter(parameters))
    for make in [*makers, lambda: None] * bool(name):
        try:
            given = {} if (empty := make()) is None else {name: empty}
            first = p.model(**{ids: p.src[:, :cut]}, **given, **use)
            kept = empty
            if empty is None:
                kept = getattr(first, "past_key_values", None) or tuple(first)[1]
            rest = tensor_of(p.model(**{ids: p.src[:, cut:]}, **{name: kept}, **use))
            gap = most(p.reader(p.src)[:, -rest.shape[1] :], rest)
        except Exception:  # of the model, called in a way that it does not know
            continue
        if gap < p.between * 10:
            return right(
                "With a cache",
                "Reading a text in two parts gives the same rows as reading it at once.",
            )
        return fails("With a cache", "cache differs", f"Rows move {share(gap)}.")
    return None


def apart(p: Patient) -> Finding | None:
    """Where each token attends to itself alone, a row depends on its own token alone."""
    title, text = "Rows apart", p.watch()
    if p.alone or not text.attended:
        return None

    def gap(*mends: str) -> float:
        """How much a row of the output moves with another token; and how much scores do that are
        not the last token's, when it changes."""
        found = p.influence(p.own_side, ITSELF, *mends)
        moves = [found - found.diagonal().diag()] if len(found) > 1 else []
        texts = (
            torch.cat([ids[:, :-1], other[:, -1:]], 1)
            for ids, other in zip((p.src, p.tgt), p.others, strict=True)
            if ids is not None and other is not None
        )
        passes = [p.watch(*some, mends=(ITSELF, NO_CROSS, *mends)) for some in ((), texts)]
        for one, two in zip(*(each.attended for each in passes), strict=False):
            if one.scores.shape == two.scores.shape:
                moves.append(moved(one.scores[:, :-1, :-1], two.scores[:, :-1, :-1]))
        return max(float(each.max()) for each in moves)

    if gap() < p.least:
        return right(title, "Where each token attends to itself alone, rows stay apart.")
    if gap(SPLIT) < p.least:
        case = "Rows depend on each other outside of attention's weights."
        return fails(title, "heads split without transpose", case, where=text.attended[0].where)
    return None


def residuals(p: Patient) -> Finding | None:
    """Without attention, and without feed-forwards, a row still depends on its own token."""
    title = "Residuals"
    if p.alone:
        return None
    if not p.watch().attended:
        return cannot_say(title, "No attention was seen that could be switched off.")
    found = p.influence(p.own_side, OFF)
    if not p.base(OFF).isfinite().all():
        return cannot_say(title, "Attention cannot be switched off: its weights are divided again.")
    is_square = len(found) == found.shape[1]
    if is_square and float((found - found.diagonal().diag()).max()) > p.least:
        return cannot_say(title, "Not all of attention could be switched off.")
    if not is_square and float(p.influence(0, ITSELF).min()) < p.least:
        return None  # what is made of all rows reads one of them
    for mends, off in (((OFF,), "attention"), ((OFF, NO_FEED), "attention and feed-forwards")):
        found = p.influence(p.own_side, *mends)
        if float((found.diagonal() if is_square else found).min()) < p.least * NEAR:
            case = f"With {off} off, a row does not move when its own token changes."
            return fails(title, "residual left out", case)
    if p.pair and (carried := p.influence(1, NO_CROSS)).isfinite().all():
        reads = p.influence(1).tril(-1).max() > p.least
        if reads and float(carried.tril(-1).max()) < p.least * NEAR:
            case = "With cross-attention off, no row moves when an earlier token changes."
            return fails(title, "residual left out", case)
    return right(title, "Without attention each row still depends on its own token.")
