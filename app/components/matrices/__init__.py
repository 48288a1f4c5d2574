"""Matrices as interactive heatmaps."""

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from headlight.app import theme
from headlight.app.components.colour_key import Scale, colour_key
from headlight.app.components.matrix import Matrix, pack, palette_of
from headlight.app.components.registered import registered

_mount = registered("matrices")


def scales(shown: Sequence[Matrix], palette: theme.Palette = theme.INKED) -> list[Scale]:
    """The scales of colours, each with the titles of the matrices that have it. `palette`: of
    weights."""
    titles: dict[tuple, list[str]] = {}
    for matrix in shown:
        if matrix.decades:
            ends = "0", "100% of the logits’ spread"
        elif matrix.weights:
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
        Scale(", ".join(dict.fromkeys(names)), palette_of(weights, palette), low, high)
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
    and column, under the names that the matrix has for them. `fills`: side by side
    they take the whole width, and the height down to the end of the window. `palette`: of
    weights."""

    def hear():
        if on_choose:
            on_choose(**st.session_state[key].chosen)

    colour_key(*scales(shown, palette))
    _mount(data=pack(shown, fills, palette), key=key, on_chosen_change=hear)
