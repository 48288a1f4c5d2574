"""What the pages say: one wording for one thing."""

import unicodedata

import numpy as np

from app.charts import Axis
from model.tokenizer import Encoding
from model.trace import Trace

KINDS = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}
SIDES = {"encoder": ("source", "source"), "decoder": ("target", "target")} | {
    "cross": ("target", "source")
}


def axes(trace: Trace, kind: str) -> tuple[Axis, Axis]:
    """Who asks (rows) and who is looked at (columns)."""
    pieces = {"source": trace.src.pieces, "target": trace.tgt.pieces}
    asks, looked_at = SIDES[kind]
    return (
        Axis(f"who asks ({asks})", pieces[asks]),
        Axis(f"who is looked at ({looked_at})", pieces[looked_at]),
    )


def head_name(kind: str, layer: int, head: int) -> str:
    return f"{KINDS[kind].capitalize()}, layer {layer + 1}, head {head + 1}"


def notices(side: str, text: str, encoding: Encoding) -> list[str]:
    """What one should know about a typed text before reading the pictures."""
    if not text:
        return []
    said = []
    control = sorted({c for c in text if unicodedata.category(c) in ("Cc", "Cf")})
    if control:
        names = ", ".join(f"U+{ord(c):04X}" for c in control)
        said.append(
            f"The {side} holds invisible characters ({names}). The model reads them like any "
            "other; the pictures show them by their code."
        )
    torn = sorted({text[start] for start, end in _spans_of_several_pieces(encoding)} - {*control})
    if torn:
        names = ", ".join(f"U+{ord(c):04X}" for c in torn[:8]) + (" …" if len(torn) > 8 else "")
        said.append(
            f"The {side} holds characters that the model has hardly or never met in training "
            f"({names}). It reads them byte by byte (🙂 1/4 is the first of four bytes), so do not "
            "expect it to know them."
        )
    return said


def _spans_of_several_pieces(encoding: Encoding) -> set[tuple[int, int]]:
    one_character = [span for span in encoding.offsets if span[1] - span[0] == 1]
    return {span for span in one_character if one_character.count(span) > 1}


def empty_rows(weights: np.ndarray, query: Axis) -> str | None:
    """A sentence on the rows of (query, key) that may attend to nothing."""
    empty = [query.labels[i] for i in np.flatnonzero(~weights.any(axis=1))]
    if not empty:
        return None
    which = ", ".join(f"“{piece}”" for piece in empty[:8]) + (" …" if len(empty) > 8 else "")
    return (
        f"Under these masks {len(empty)} of {len(query.labels)} rows may look at nothing and are "
        f"left blank: {which}. Their weights are all zero."
    )


def first_undefined(attention: dict[str, np.ndarray], trace: Trace) -> str | None:
    """A sentence on where PyTorch's weights, (layers, heads, query, key), stop being numbers."""
    for kind, weights in attention.items():
        undefined = np.isnan(weights).any(axis=(1, 3))  # (layers, query)
        if undefined.any():
            layer, row = np.argwhere(undefined)[0]
            return (
                f"PyTorch's weights are NaN from {KINDS[kind]}, layer {layer + 1}, row "
                f"“{axes(trace, kind)[0].labels[row]}” on: that row may look at nothing, and "
                "softmax of nothing is undefined. Ours is zero there. Before that layer the two "
                "can be compared."
            )
    return None
