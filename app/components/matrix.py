"""A matrix that is drawn as a heatmap, and the bytes that its script reads."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headlight.app import theme


@dataclass(frozen=True)
class Matrix:
    """A matrix (row, column). `row_name`, `column_name`: what rows and columns are; `rows`,
    `columns`: their labels, empty if they have none. `bands`, `band`: the number of heads that
    share the columns (or, unless `across`, the rows), and the selected one. NaN is hatched: `blank`
    says what it is."""

    title: str
    values: np.ndarray
    row_name: str
    column_name: str
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    weights: bool = False  # from 0 to 1, or to `largest`, on the scale of weights
    numbers: bool = True  # in the cells, where they fit
    scale: str = ""  # the name of its scale, if it is not the title
    ends: tuple[str, str] = ("value {}", "{}")  # what the ends of another scale are
    blank: str = "masked"
    labelled: bool = True  # whether rows have labels; not, where those of another stand beside them
    bands: int = 1
    band: int = 0
    across: bool = True
    follow: int = -1  # the highlighted row
    chooses: str = ""  # what a click on a row chooses, if anything
    column: int = -1  # the highlighted column
    chooses_column: str = ""  # what a click on a cell chooses too, if anything
    single: bool = False  # only cells are chosen and highlighted; a second click lets one go (-1)
    pinned: bool = False  # the highlighted cell was chosen: Esc lets it go, too
    largest: float = 0.0  # the value with the strongest colour; 0: the matrix's own maximum
    decades: int = 0  # of a logarithmic scale up to 1; a negative value breaks a law, and is red


def palette_of(weights: bool, palette: theme.Palette) -> theme.Palette:
    return palette if weights else theme.DIFFERENCES


def pack(
    shown: Sequence[Matrix], fills: bool = True, palette: theme.Palette = theme.INKED
) -> bytes:
    """Length of the header (4 bytes, little-endian), header (JSON), then float32 values, matrix
    by matrix."""
    header = {
        "focus": theme.FOCUS,
        "lines": theme.LINES,
        "fills": fills,
        "matrices": [
            vars(matrix)
            | {
                "values": matrix.values.shape,
                "rows": list(matrix.rows),
                "columns": list(matrix.columns),
                "palette": palette_of(matrix.weights, palette),
            }
            for matrix in shown
        ],
    }
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    cells = [np.ascontiguousarray(matrix.values, np.float32).tobytes() for matrix in shown]
    return b"".join([len(head).to_bytes(4, "little"), head, *cells])
