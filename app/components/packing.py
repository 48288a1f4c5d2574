"""The data of the head grid, packed as bytes, and its display options. No Streamlit: exported pages
use it, too."""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np
import torch

from headlight.app.text import output_texts, part_names
from headlight.model.analysis.reading import Reading
from headlight.model.probing.long_trace import PICTURE_CELLS, LongTrace, Weights, largest
from headlight.model.probing.trace import Trace, without_padding

HALF = np.float32(0.005)  # half a percent: the steps of weight_bytes
FINE = 54  # of its steps below the first
PARTS = 54_000  # into which weight_bytes cuts 1, of which both kinds of steps are whole numbers


Answer = tuple[Mapping[str, Any], Mapping[str, Any]]


@dataclass(frozen=True)
class GridText:
    """A text in the grid: its name, a label for each token, and whether a space precedes it.
    `following`: for each token the next one, which its row predicts; empty where it predicts
    none."""

    name: str
    labels: Sequence[str]
    spaced: Sequence[bool]
    following: Sequence[str] = ()


@dataclass(frozen=True)
class PackedPredictions:
    """Predictions with their probabilities, best first, for each row of a side, or one row for the
    whole text; `last` is the last row before the padding."""

    side: str
    rows: Sequence[Sequence[tuple[str, float]]]
    last: int


@dataclass(frozen=True)
class PackedAttention:
    """One kind of attention. `query`, `key`: names of sides; weights: (layers, heads, query, key),
    reduced to the cells that are drawn; `numbers`: the layers' numbers on screen; `shifts`: for
    each tile 1 if its head follows the word that a row predicts, else 0, or empty."""

    kind: str
    name: str
    query: str
    key: str
    weights: np.ndarray
    numbers: Sequence[int]
    shifts: Sequence[int] = ()


MOST_PROBABLE = 5


def answers_of(
    trace: Trace | LongTrace,
    outputs: Callable[[Iterable[int], Iterable[int | None]], Sequence[str]],
) -> PackedPredictions | None:
    """The predictions of a trace, if it has any; `outputs` turns ids, each with the one before it,
    into labels."""
    side = trace.predicted
    if side.predicts in ("", output_texts.EMBEDDING):
        return None
    rows = [
        [
            (label, round(float(share), 6))
            for label, share in zip(outputs(ids, repeat(after)), shares, strict=True)
        ]
        for ids, shares, after in zip(
            *trace.most_probable(MOST_PROBABLE), trace.preceding, strict=True
        )
    ]
    last = min(without_padding(trace.texts[side.name]), len(rows)) - 1
    return PackedPredictions(side.title, rows, last)


def pack_trace(
    trace: Trace | LongTrace,
    reading: Reading,
    answers: PackedPredictions | None = None,
    attention: Mapping[str, Weights] | None = None,
) -> bytes:
    """All heads of a trace as `reading` merges and hides tokens, with predictions if given. A long
    trace comes with its `attention`."""
    shown = replace(reading, average="", least=0.0)
    if isinstance(trace, LongTrace):
        assert attention is not None
        weights = {kind: _tiles(trace, kind, shown, attention[kind]) for kind in trace.kinds}
    else:
        weights = {
            kind: shown.each(trace.attention[kind], *trace.texts_of(kind)).weights
            for kind in trace.kinds
        }
    parts = [
        PackedAttention(
            kind,
            part_names.kind_name(trace, kind),
            trace.sides_of(kind)[0].title,
            trace.sides_of(kind)[1].title,
            weights[kind],
            [site.layer + 1 for site in trace.kinds[kind]],
            trace.shifts[kind].ravel().tolist() if kind in trace.shifts else (),
        )
        for kind in trace.kinds
    ]
    sides = {
        side.title: GridText(
            side.title.capitalize(),
            *part_names.side_labels(trace.texts[name], shown),
            part_names.following(trace, shown) if side == trace.predicted else (),
        )
        for name, side in trace.sides.items()
    }
    # Merged or hidden rows have no prediction of their own.
    whole = answers and len(answers.rows) in (1, len(sides[answers.side].labels))
    return pack(sides, parts, answers if whole else None)


def _tiles(trace: LongTrace, kind: str, reading: Reading, layers: Weights) -> np.ndarray:
    """All heads of a long trace, reduced to the cells that are drawn."""
    if reading == Reading():
        return trace.tiles[kind]
    texts = trace.texts_of(kind)
    return np.stack([shrunk(reading.each(layer, *texts).weights) for layer in layers])


def pack(
    sides: Mapping[str, GridText],
    parts: Sequence[PackedAttention],
    answers: PackedPredictions | None = None,
) -> bytes:
    """Length of the header (4 bytes, little-endian), header (JSON), then a byte a cell, see
    `weight_bytes`. Of a long text each cell stands for several, and holds their largest
    weight."""
    every = {key: -(-len(side.labels) // PICTURE_CELLS) or 1 for key, side in sides.items()}
    drawn = [shrunk(part.weights) for part in parts]
    cells = b"".join(weight_bytes(weights).tobytes() for weights in drawn)
    header = {
        "sides": {key: vars(side) | {"every": every[key]} for key, side in sides.items()},
        "parts": [
            vars(part)
            | {"weights": None, "numbers": list(part.numbers)}
            | dict(zip(("layers", "heads", "rows", "columns"), weights.shape, strict=True))
            for part, weights in zip(parts, drawn, strict=True)
        ],
        "answers": answers and vars(answers),
    }
    return _joined(header, cells)


def _joined(header: Mapping, cells: bytes) -> bytes:
    text = json.dumps(header, separators=(",", ":"))
    named = {**header, "id": hashlib.blake2b(text.encode() + cells, digest_size=8).hexdigest()}
    head = json.dumps(named, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    return len(head).to_bytes(4, "little") + head + cells


def pack_answers(answers: Sequence[Answer], **header) -> bytes:
    """Answers to questions of the stage: each with what was asked, and its numbers, arrays (rows,
    columns) by name, or a value. Packed as `pack` does; the header holds what is given besides."""
    listed, arrays = [], []
    for of, found in answers:
        is_numbers = all(isinstance(value, np.ndarray) for value in found.values())
        shapes = {name: array.shape for name, array in found.items()} if is_numbers else {}
        listed.append({"of": of} | ({"shapes": shapes} if is_numbers else {"value": found}))
        arrays += found.values() if is_numbers else ()
    head = json.dumps(header | {"answers": listed}, separators=(",", ":")).encode()
    cells = b"".join(np.ascontiguousarray(array, "<f4").tobytes() for array in arrays)
    return len(head).to_bytes(4, "little") + head + cells


def covered(packed: bytes, veils: Sequence[Mapping]) -> bytes:
    """A packed run without what is covered: the cells that `cover` of stage/cells.js covers are
    0, and there are no predictions. A row adds up to 1, so a covered column takes all of its
    head."""
    length = int.from_bytes(packed[:4], "little")
    header, cells = json.loads(packed[4 : 4 + length]), bytearray(packed[4 + length :])
    first = 0
    for part in header["parts"]:
        shape = [part[n] for n in ("layers", "heads", "rows", "columns")]
        size = math.prod(shape)
        weights = np.frombuffer(cells, np.uint8, size, first).reshape(shape)
        for veil in veils:
            if veil["what"] in ("row", "column") and veil["kind"] == part["kind"]:
                row = veil["place"] // header["sides"][part["query"]]["every"]
                rows = row if veil["what"] == "row" else slice(None)
                weights[veil["layer"], veil["head"], rows] = 0
        first += size
    del header["id"]
    return _joined(header | {"answers": None}, bytes(cells))


def id_of(packed: bytes) -> str:
    """What names packed runs, one or several behind each other, as the browser does
    (stage/cells.js)."""
    length = int.from_bytes(packed[:4], "little")
    header = json.loads(packed[4 : 4 + length])
    shapes = [[part[n] for n in ("layers", "heads", "rows", "columns")] for part in header["parts"]]
    rest = packed[4 + length + sum(map(math.prod, shapes)) :]
    return header["id"] + (id_of(rest) if rest else "")


def weight_bytes(weights: np.ndarray) -> np.ndarray:
    """Weights from 0 to 1 as uint8, so that a byte and its weight are the same whole percent: steps
    of half a percent, and FINE steps below the first. 0 means masked."""
    with np.errstate(invalid="ignore"):  # NaN is not above 0
        # In float64: float32 would round a weight just below a step onto it.
        parts = np.multiply(weights, PARTS, dtype=np.float64).astype(np.uint16)
        return _BYTES[parts] * (weights > 0)


def _bytes_of_parts() -> np.ndarray:
    """The byte of a weight of so many PARTS, for every uint16."""
    parts, half = np.arange(2**16), PARTS // 200  # whole numbers: exact at the ends of a step
    steps = np.where(parts < half, 1 + FINE * parts // half, FINE + parts // half)
    return np.minimum(steps, 254).astype(np.uint8)


_BYTES = _bytes_of_parts()


def as_sent(weights: np.ndarray) -> np.ndarray:
    """Weights as the grid gets them: the middle of those that their byte stands for. Masked stays
    0."""
    cells = weight_bytes(weights).astype(np.float32)
    fine, steps = (cells - 0.5) / FINE * HALF, np.minimum(1, (cells - FINE + 0.5) * HALF)
    return np.where(cells == 0, 0, np.where(cells <= FINE, fine, steps))


def shrunk(weights: np.ndarray) -> np.ndarray:
    """(.., query, key) with at most LARGEST cells along each side."""
    return shrink(weights, *(-(-length // PICTURE_CELLS) or 1 for length in weights.shape[-2:]))


def shrink(weights: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """(.., query, key): each `rows` × `columns` cells become one, their largest weight."""
    if rows == columns == 1:
        return weights
    return largest(torch.tensor(weights), rows, columns).numpy()
