"""Trials of what a row of the output depends on: its batch, the future, what came before, the
source. Each is judged by behaviour; what was seen on the way only gives a fault its name."""

import inspect
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from headlight.model.checking.whole.patient import Patient, most, share
from headlight.model.checking.whole.reader import CAUSAL
from headlight.model.checking.whole.result import LOOK, Finding, cannot_say, fails, right
from headlight.model.checking.whole.watching import (
    AXIS,
    CROSS,
    DECODER,
    DROPOUT,
    ENCODER,
    NO_CAUSAL,
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
    if events and events[0].kind in (DECODER, SELF):
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
        p.without_dropout()  # so that the other trials judge the rest
        return fails(title, "dropout in eval", case, where=seen.dropped[0])
    return fails(title, "random in eval", case, where=(seen.dropped + seen.random + [""])[0])


def own_text(p: Patient) -> Finding:
    """A text reads the same alone, first and last in a batch, whatever its neighbour."""
    title = "Its own text alone"
    src, tgt = p.others
    flipped = src.flip(1), None if tgt is None else tgt.flip(1)

    def gaps() -> tuple[float, float]:
        beside = [[p.beside(texts, at) for texts in (p.others, flipped)] for at in (0, 1)]
        alone = p.base()
        return max(most(*pair) for pair in beside), max(most(alone, pair[0]) for pair in beside)

    neighbour, order = gaps()
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
        is_mended = bool(swapped) and max(gaps()) < p.between
    except Exception:  # of the model: masks of the shape that went with it
        is_mended = False
    if is_mended:  # and stays so: the other trials judge the rest
        return fails(title, "batch and length swapped", case, where=next(iter(swapped.values())))
    for module in swapped:
        module.batch_first = False
    p.alone = True
    with torch.no_grad(), watching(p.model, (2, 2)) as watch:  # attention of two texts
        p.reader(*p.both())
    if watch.seen.attended:
        where = watch.seen.attended[0].where
        return fails(title, "batch and length swapped", case, where=where)
    return fails(title, "sees the batch", case)


def future(p: Patient) -> Finding:
    """No row moves when a later token changes."""
    title = "The future"
    found = p.influence(p.own_side)
    n, later = len(found), found.triu(1)
    matrix = {"found": found, "expected": torch.ones(n, n).tril()}
    if float(later.max()) < p.least:
        return right(title, f"No row moves when one of {n - 1} later tokens changes.", **matrix)
    row, token = divmod(int(later.argmax()), n)
    case = f"Row {row + 1} moves {share(float(later.max()))} when token {token + 1} changes."
    seen = p.watch()
    own = seen.of_kind(DECODER, SELF)
    where = (own[0].mask_at or own[0].where) if own else ""
    if p.pair and not seen.of_kind(ENCODER, CROSS) and float(p.influence(0).max()) < p.least:
        return fails(title, "encoder reads the target", case, where=where, **matrix)
    mended = {mend: float(p.influence(p.own_side, mend).triu(1).max()) < p.least
              for mend in (NO_CAUSAL, AXIS, SPLIT)}  # fmt: skip
    name = _name_of_leak(own, mended)
    if p.pair and not seen.of_kind(CROSS):
        name = ""  # one of these is cross-attention of another shape
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


def _name_of_leak(own: Sequence[Attended], mended: Mapping[str, bool]) -> str:
    """By the weights of self-attention, and by what keeps the law once it is mended; "" if
    nothing does."""
    if not own:
        return ""
    if mended[AXIS] and any(a.axis != -1 for a in own):
        return "softmax over the wrong axis"
    leaks = [float(a.weights.nan_to_num().triu(1).max()) for a in own]
    if not any(leaks):
        return "heads split without transpose" if mended[SPLIT] else "reads the future elsewhere"
    leaky = next(i for i, leak in enumerate(leaks) if leak)
    weights = own[leaky].weights.nan_to_num()
    past = weights.tril(-1)
    if float(past[1:-1].max()) < CLEAR:
        is_open = float(weights.diagonal()[:-1].min()) > CLEAR
        return "rows for columns" if is_open else "True for False"
    if not mended[NO_CAUSAL]:
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
    missing = min(leaks) < NONE < max(leaks)
    return "causal mask missing in a layer" if missing else "no causal mask"


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


def past(p: Patient) -> Finding:
    """Each row depends on each token before it, or on as many as a window lets it."""
    title = "What came before"
    found = p.influence(p.own_side)
    seen, n = found > p.least * NEAR, len(found)
    below = torch.ones(n, n, dtype=torch.bool).tril(-1)
    matrix = {"found": found, "expected": torch.ones(n, n).tril()}
    if bool(seen[below].all()):
        return right(title, "Each row depends on all tokens before it.", **matrix)
    if band := _is_band(seen, lower=True):
        return right(title, f"Each row reaches {band} tokens back: a window.", **matrix)
    if p.alone:
        return cannot_say(title, SHARE_BATCH, **matrix)
    if not bool(seen[below].any()):
        return _reads_nothing(p, title, "No row moves when an earlier token changes.", matrix)
    row, token = (below & ~seen).nonzero()[0].tolist()
    case = f"Row {row + 1} does not move when token {token + 1} changes."
    is_mended = bool((p.influence(p.own_side, SPLIT) > p.least * NEAR)[below].all())
    name = "heads split without transpose" if is_mended else "reads a part of what came before"
    return fails(title, name, case, **matrix)


def _reads_nothing(p: Patient, title: str, case: str, matrix: Mapping) -> Finding:
    where = (*p.watch().over_heads, "")[0]
    name = "attention over the heads" if where else "reads nothing before"
    return fails(title, name, case, where=where, **matrix)


def both_ways(p: Patient) -> Finding:
    """In an encoder each row depends on each token, or on its neighbours."""
    title = "The whole text"
    found = p.influence(0)
    seen, n = found > p.least * NEAR, found.shape[1]
    matrix = {"found": found, "expected": torch.ones_like(found)}
    if bool(seen.all()):
        return right(title, "Each row depends on each token.", **matrix)
    if is_square := len(found) == n:
        if not bool((seen & ~torch.eye(n, dtype=torch.bool)).any()):
            return _reads_nothing(p, title, "Rows depend on their own token alone.", matrix)
        if _is_band(seen, lower=False):
            return right(title, "Each row sees its neighbours: a window.", **matrix)
    if is_square and not bool(seen.triu(1).any()):
        return fails(title, "causal mask in an encoder", "No row moves when a later token changes.",
                     **matrix)  # fmt: skip
    row, token = (~seen).nonzero()[0].tolist()
    case = f"Row {row + 1} does not move when token {token + 1} changes."
    is_mended = bool((p.influence(0, SPLIT) > p.least * NEAR).all())
    name = "heads split without transpose" if is_mended else "reads a part of what came before"
    return fails(title, name, case, **matrix)


def source(p: Patient) -> Finding:
    """Each source token moves some row of the target."""
    title = "The source"
    found = p.influence(0)
    reached = (found > p.least * NEAR).any(0)
    matrix = {"found": found, "expected": torch.ones_like(found), "axes": ("row", "source token")}
    if bool(reached.all()):
        return right(title, "Every source token changes the output.", **matrix)
    if not bool(reached.any()):
        events = p.watch().of_kind(CROSS)
        case = f"In {len(events)} steps the target attends to {len(reached)} source tokens."
        where = events[0].where if events else ""
        return fails(title, "never reads the source", case, where=where, **matrix)
    if p.alone:
        return cannot_say(title, SHARE_BATCH, **matrix)
    is_mended = bool((p.influence(0, SPLIT) > p.least * NEAR).any(0).all())
    name = "heads split without transpose" if is_mended else "reads a part of the source"
    case = f"Source token {int((~reached).nonzero()[0]) + 1} changes nothing."
    return fails(title, name, case, **matrix)


def diagonal(p: Patient) -> Finding | None:
    """In causal attention a token attends to itself, which a residual would hide."""
    events = p.watch().of_kind(DECODER, SELF)
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

    def gaps(*mends: str) -> list[float]:
        whole = p.written(p.read, *mends)
        return [most(whole[:, :k], p.written(p.read[:, :k], *mends)) for k in range(2, n)]

    found = gaps()
    if max(found) < p.between:
        return right(title, "Rows are the same when fewer tokens follow.")
    is_mended = max(gaps(SPLIT)) < p.between
    name = "heads split without transpose" if is_mended else "length changes rows"
    count = found.index(max(found)) + 2
    return fails(title, name, f"With {count} of {n} tokens, rows move {share(max(found))}.")


@torch.no_grad()
def cached(p: Patient) -> Finding | None:
    """A text in two steps, the second with the cache of the first: the same rows."""
    takes = {*inspect.signature(p.model.forward).parameters}
    if p.reader.kind != CAUSAL or not {"past_key_values", "use_cache"} <= takes:
        return None
    cut = p.src.shape[1] - 3
    first = p.model(input_ids=p.src[:, :cut], use_cache=True)
    past = first.past_key_values
    rest = p.model(input_ids=p.src[:, cut:], past_key_values=past, use_cache=True)
    gap = most(p.reader(p.src)[:, cut:], rest.logits)
    if gap < p.between * 10:
        return right("With a cache", "Two steps give the same rows as one.")
    return fails("With a cache", "cache differs", f"Rows move {share(gap)}.")


def residuals(p: Patient) -> Finding | None:
    """Without attention a row still depends on its own token."""
    title = "Residuals"
    if p.alone:
        return None
    if not p.watch().attended:
        return cannot_say(title, "No attention was seen that could be switched off.")
    found = p.influence(p.own_side, OFF)
    if not p.base(OFF).isfinite().all():
        return cannot_say(title, "Attention cannot be switched off: its weights are divided again.")
    if float((found - found.diagonal().diag()).max()) > p.least:
        return cannot_say(title, "Not all of attention could be switched off.")
    if float(found.diagonal().min()) < p.least * NEAR:
        return fails(title, "residual left out", "With attention off, a row does not move when its "
                     "own token changes.", found=found, expected=torch.eye(len(found)))  # fmt: skip
    return right(title, "Without attention each row still depends on its own token.")
