"""The trial of padding: more of it behind a source changes no row."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from headlight.model.checking.whole.patient import PADS, Patient, moved, share
from headlight.model.checking.whole.reader import CAUSAL
from headlight.model.checking.whole.result import Finding, cannot_say, fails, right
from headlight.model.checking.whole.seeing import CLEAR, SHARE_BATCH
from headlight.model.checking.whole.watching import (
    CROSS,
    ENCODER,
    PAD_CROSS,
    PAD_ENCODER,
    SELF,
)

TITLE = "Padding"


def padded(p: Patient) -> Tensor:
    """The source with padding behind it, (1, length) of ids."""
    assert p.reader.pad is not None
    return torch.cat([p.src, torch.full((1, PADS), p.reader.pad)], 1)


def padding_gap(p: Patient, *mends: str) -> float:
    """How much the row moves that moves most, see `_gaps`."""
    return float(_gaps(p, *mends).max())


def _gaps(p: Patient, *mends: str, pads: int = PADS) -> Tensor:
    """(row,): how much rows move with padding, as a share of the spread of all logits."""
    whole = p.base(*mends)
    out = p.run(padded(p)[:, : p.src.shape[1] + pads], p.tgt, mends, pads)
    rows = min(whole.shape[1], out.shape[1])
    return moved(whole[:, :rows], out[:, :rows])[0]


def _growing(p: Patient, *mends: str) -> Tensor:
    """(row, padding): how much rows move with one token of padding, with two, …"""
    return torch.stack([_gaps(p, *mends, pads=pads + 1) for pads in range(PADS)], 1)


def padding(p: Patient) -> Finding | None:
    """With padding behind the source, each row is what it was."""
    if p.reader.kind == CAUSAL:
        return None  # what stands behind a text is its future
    if p.reader.pad is None:
        return cannot_say(TITLE, "Nobody says which id is padding: give pad=0.")
    gaps = _gaps(p)
    if float(gaps.max()) < p.between:
        return right(TITLE, f"With {PADS} tokens of padding, no row moves.")
    found = _growing(p)
    matrix: dict[str, Any] = {
        "found": found, "expected": torch.zeros_like(found), "axes": ("row", "padding token"),
    }  # fmt: skip
    row = int(gaps.argmax()) + 1
    case = f"With {PADS} tokens of padding, row {row} moves {share(float(gaps.max()))}."
    if p.alone:
        return cannot_say(TITLE, f"{SHARE_BATCH} {case}")
    if p.run(padded(p), p.tgt).isnan().any():
        return fails(TITLE, "NaN", case, **matrix)
    events = p.watch(padded(p)).of_kind(ENCODER, SELF, CROSS)
    length = p.src.shape[1]
    for each in events:
        if float(each.weights[:, :-PADS].max()) < CLEAR < float(each.weights[:, -PADS:].max()):
            return fails(TITLE, "padding mask inverted", case, where=each.where, **matrix)
        rows = (
            each.weights[-PADS:] if each.kind != CROSS else each.weights[:0]
        )  # of padding: alike for all keys, or none
        if len(rows) and float((rows.nan_to_num() - rows.nan_to_num().mean()).abs().max()) < CLEAR:
            return fails(TITLE, "padding mask along the queries", case, where=each.mask_at,
                         **matrix)  # fmt: skip
    for number in {*p.watch().compared} - {p.reader.pad}:
        other = Patient(p.model, replace(p.reader, pad=number), p.vocabulary)
        if padding_gap(other) < p.between:
            case += f" The mask hides {number}, and padding is {p.reader.pad}."
            return fails(TITLE, "another id for padding", case, **matrix)
    lines = {each.kind: each.mask_at or each.where for each in reversed(events)}
    both = PAD_ENCODER, PAD_CROSS
    tries: list[tuple[str, tuple[str, ...], str]] = [
        ("encoder sees padding", (PAD_ENCODER,), lines.get(ENCODER, "")),
        ("cross-attention sees padding", (PAD_CROSS,), lines.get(CROSS, "")),
        ("both see padding", both, lines.get(ENCODER, "")),
    ]
    if not p.pair:
        tries = [("sees padding", (PAD_ENCODER,), lines.get(SELF, ""))]
    for fault, mends, where in tries:
        if padding_gap(p, *mends) < p.between:
            return fails(TITLE, fault, case, where=where, **matrix, mended=_growing(p, *mends))
    first = p.first_moved(padded(p), p.tgt, length, length)
    if p.base().shape[1] == 1 and not first:
        return fails(TITLE, "pooling counts padding", case, **matrix)
    where = f"first seen in the output of {first}" if first else ""
    return fails(TITLE, "sees padding", case, where=where, **matrix)
