"""All heads at once, and the text that they read: the browser's part is head_grid.js."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import streamlit as st

HERE = Path(__file__).resolve().parent
# Seconds. The server sends from another thread, every 10 ms: the browser should be drawing the
# grid by the time it hears of what takes longer to draw.
HEAD_START = 0.02
LARGEST = 256  # cells along a side of one head; more are not seen in a tile

_mount = st.components.v2.component(
    "headlight_head_grid",
    css=(HERE / "head_grid.css").read_text(encoding="utf-8"),
    js=(HERE / "head_grid.js").read_text(encoding="utf-8"),
)
# A mount sends its script along with its data, so the small one has a small script.
_mount_look = st.components.v2.component(
    "headlight_head_grid_look",
    js="""
export default function ({ data }) {
  const shared = (window.headlight ??= {});
  shared.look = data;
  shared.grid?.setLook(data);
}
""",
)


@dataclass(frozen=True)
class Side:
    """A text as the grid shows it: its name, a label a piece, whether a space stands before."""

    name: str
    labels: Sequence[str]
    spaced: Sequence[bool]


@dataclass(frozen=True)
class Part:
    """One kind of attention: who asks (rows) and who is looked at (columns), both names of
    sides; weights (layers, heads, query, key)."""

    kind: str
    name: str
    asks: str
    looked_at: str
    weights: np.ndarray


@dataclass(frozen=True)
class Look:
    """How the grid is looked at. `focus` is kind, layer and head, counted from 0. `order` is
    empty, or for each kind the tiles (layer × heads + head) in their order and a text for each
    tile."""

    focus: Mapping
    show: str
    scale: str
    order: Mapping
    average: str
    least: float
    palette: Sequence[str]
    colour: str


def order(values: np.ndarray, text: str, largest_first: bool = False) -> dict:
    """`Look.order` of one kind: heads by their values (layers, heads), written as `text`."""
    flat = values.ravel()
    tiles = np.argsort(-flat if largest_first else flat, kind="stable")
    return {"tiles": tiles.tolist(), "values": [text.format(value) for value in flat]}


def head_grid(packed: bytes, look: Look, on_focus: Callable[[Mapping], None]) -> None:
    """The grid. `on_focus` hears of a head that was chosen, as `Look.focus`."""

    def chosen():
        on_focus(st.session_state["head_grid"].focus)

    _mount(data=packed, key="head_grid", on_focus_change=chosen)
    # Apart, because it changes with every click, and the weights are large.
    _mount_look(data=asdict(look), key="head_grid_look", height=1)
    if st.session_state.get("_head_grid_sent") != (sent := hash(packed)):
        st.session_state["_head_grid_sent"] = sent
        time.sleep(HEAD_START)


def pack(sides: Mapping[str, Side], parts: Sequence[Part]) -> bytes:
    """Length of the header (4 bytes, little-endian), header (JSON), then a byte a cell: 0 where
    the query may not look, else 1 + 254 × weight. Of a long text each cell stands for several,
    and holds their largest weight."""
    every = {key: -(-len(side.labels) // LARGEST) or 1 for key, side in sides.items()}
    shrunk = [shrink(p.weights, every[p.asks], every[p.looked_at]) for p in parts]
    cells = b"".join(to_bytes(weights).tobytes() for weights in shrunk)
    header = {
        "sides": {key: vars(side) | {"every": every[key]} for key, side in sides.items()},
        "parts": [
            vars(part)
            | {"weights": None}
            | dict(zip(("layers", "heads", "rows", "columns"), weights.shape, strict=True))
            for part, weights in zip(parts, shrunk, strict=True)
        ],
    }
    text = json.dumps(header, separators=(",", ":"))
    header["id"] = hashlib.blake2b(text.encode() + cells, digest_size=8).hexdigest()
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    return len(head).to_bytes(4, "little") + head + cells


def to_bytes(weights: np.ndarray) -> np.ndarray:
    """Weights of 0 to 1 as uint8. What is exactly 0 was masked: softmax gives the rest more."""
    return np.where(weights > 0, np.rint(weights * 254 + 1), 0).astype(np.uint8)


def shrink(weights: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """(.., query, key): each `rows` × `columns` cells become one, their largest weight."""
    for axis, every in ((-2, rows), (-1, columns)):
        if every > 1:
            starts = np.arange(0, weights.shape[axis], every)
            weights = np.maximum.reduceat(weights, starts, axis=axis)
    return weights
