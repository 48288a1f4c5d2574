"""Matrices as interactive heatmaps."""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import streamlit as st

from headlight.app import theme
from headlight.app.components.colour_key import Scale, colour_key
from headlight.app.components.registered import registered

_mount = registered("matrices")

SMALLEST = 1e-9  # the end of the scale of a difference where there is none


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
    first: int = 1  # the number of the first row or column without a label
    bands: int = 1
    band: int = 0
    across: bool = True
    follow: int = -1  # the highlighted row
    chooses: str = ""  # what a click on a row chooses, if anything
    column: int = -1  # the highlighted column
    chooses_column: str = ""  # what a click on a cell chooses too, if anything
    single: bool = False  # only cells are chosen and highlighted; a second click lets one go (-1)
    pinned: bool = False  # the highlighted cell was chosen: Esc lets it go, too
    choice: Mapping[str, int] = field(default_factory=dict)  # what any choice says besides
    largest: float = 0.0  # the value with the strongest colour; 0: the matrix's own maximum


def on_one_scale(*groups: Sequence[Matrix]) -> list[list[Matrix]]:
    """The same groups, with one colour scale for matrices of the same title; that of weights is
    the same anyway."""
    largest: dict[str, float] = {}
    for matrix in itertools.chain(*groups):
        most = float(np.nanmax(np.abs(matrix.values), initial=0))
        largest[matrix.title] = max(most, largest.get(matrix.title, 0))
    return [
        [
            matrix if matrix.weights else replace(matrix, largest=largest[matrix.title])
            for matrix in group
        ]
        for group in groups
    ]


def compared(two: Mapping[str, np.ndarray], difference: str, **options: Any) -> list[Matrix]:
    """Two versions of the same weights, by title, and the first minus the second on a scale of its
    own, symmetric around zero. `options`: of every Matrix. Rows are labelled once."""
    first, second = two.values()
    apart = first - second
    largest = float(np.nanmax(np.abs(apart), initial=0)) or SMALLEST
    return [
        *(
            Matrix(title, values, weights=True, scale="weight", labelled=values is first, **options)
            for title, values in two.items()
        ),
        Matrix(
            difference,
            apart,
            numbers=False,
            labelled=False,
            largest=largest,
            scale="difference",
            ends=("{}", "{}"),
            **options,
        ),
    ]


def scales(shown: Sequence[Matrix], palette: theme.Palette = theme.INKED) -> list[Scale]:
    """The scales of colours, each with the titles of the matrices that have it. `palette`: of
    weights."""
    titles: dict[tuple, list[str]] = {}
    for matrix in shown:
        if matrix.weights:
            ends = "0", f"{matrix.largest or 1:.2g}"
        else:
            most = (
                matrix.largest
                or float(np.max(np.abs(matrix.values), where=np.isfinite(matrix.values), initial=0))
                or 1
            )
            both = zip(matrix.ends, (f"−{most:.2g}", f"{most:.2g}"), strict=True)
            ends = tuple(end.format(value) for end, value in both)
        titles.setdefault((matrix.weights, *ends), []).append(matrix.scale or matrix.title)
    return [
        Scale(", ".join(dict.fromkeys(names)), palette if weights else theme.DIFFERENCES, low, high)
        for (weights, low, high), names in titles.items()
    ]


def matrices(
    shown: Sequence[Matrix],
    key: str,
    on_choose: Callable[..., None] | None = None,
    fills: bool = True,
    palette: theme.Palette = theme.INKED,
) -> None:
    """Side by side if there is room, or else stacked. `on_choose` is called with the clicked row,
    named by what a matrix `chooses`, and the column, by its `chooses_column`. `fills`: side by side
    they take the whole width, and the height down to the end of the window. `palette`: of
    weights."""

    def hear():
        if on_choose:
            on_choose(**st.session_state[key].chosen)

    colour_key(*scales(shown, palette))
    _mount(data=pack(shown, fills, palette), key=key, on_chosen_change=hear)


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
                "palette": palette if matrix.weights else theme.DIFFERENCES,
            }
            for matrix in shown
        ],
    }
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    cells = [np.ascontiguousarray(matrix.values, np.float32).tobytes() for matrix in shown]
    return b"".join([len(head).to_bytes(4, "little"), head, *cells])
