"""Matrices as pictures that one can point at."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from app import theme
from app.components.scripts import read, script

_mount = st.components.v2.component(
    "headlight_matrices",
    css=read("matrices/style.css"),
    js=script("matrices/index.js"),
)


@dataclass(frozen=True)
class Matrix:
    """A matrix (row, column); `row_name` and `column_name`: what its rows and columns are. `rows`
    and `columns`: a label for each, or empty for numbers that have no name. `bands`: into how many
    heads its columns (or, with `across` false, its rows) fall, and which one is selected. NaN is
    left blank."""

    title: str
    values: np.ndarray
    row_name: str
    column_name: str
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    weights: bool = False  # from 0 to 1, on the scale of weights
    bands: int = 1
    band: int = 0
    across: bool = True
    follow: int = -1  # the row that is followed
    largest: float = 0.0  # what has the strongest colour; 0: the largest of its own


def on_one_scale(*groups: Sequence[Matrix]) -> list[list[Matrix]]:
    """The groups, whose matrices of the same title have one scale of colours."""
    largest: dict[str, float] = {}
    for one in itertools.chain(*groups):
        most = float(np.nanmax(np.abs(one.values), initial=0))
        largest[one.title] = max(most, largest.get(one.title, 0))
    return [[replace(one, largest=largest[one.title]) for one in group] for group in groups]


def matrices(shown: Sequence[Matrix], key: str) -> None:
    """Side by side or below each other, as there is room."""
    _mount(data=pack(shown), key=key)


def pack(shown: Sequence[Matrix]) -> bytes:
    """Length of the header (4 bytes, little-endian), header (JSON), then float32 values, matrix
    by matrix."""
    header = {
        "focus": theme.FOCUS,
        "lines": theme.LINES,
        "matrices": [
            vars(matrix)
            | {
                "values": matrix.values.shape,
                "rows": list(matrix.rows),
                "columns": list(matrix.columns),
                "palette": theme.WEIGHTS if matrix.weights else theme.DIFFERENCES,
            }
            for matrix in shown
        ],
    }
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    cells = [np.ascontiguousarray(matrix.values, np.float32).tobytes() for matrix in shown]
    return b"".join([len(head).to_bytes(4, "little"), head, *cells])
