"""How the model knows word order: the positional table, the input of layer 1, and a lab."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import streamlit as st

from headlight.app import selection
from headlight.app.components.matrices import matrices
from headlight.app.components.matrix import Matrix
from headlight.app.results import position_results
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.state.options import NO_CELL
from headlight.app.text import exercises, notices, part_names
from headlight.app.text.formats import escaped
from headlight.app.views._positions_lab import (
    DRAW_SECTION,
    FORMULA,
    OF_ALL_SIDES,
    POSITION,
    RELATIVE,
    Lab,
)


def choose_cell(positions: Sequence[str], position: int, dimension: int) -> None:
    """Choose the position and the dimension of the clicked cell, or none where it was let go. A
    callback."""
    if position < 0:
        session.choose(position=NO_CELL)
    else:
        session.choose(position=positions[position], dimension=dimension)


def page() -> None:
    selection.tell_unchanged()
    shown, projector = selection.unchanged(), session.values()["projector"]
    trace = shown.trace
    sides = {side.title: side.name for side in trace.sides.values()}
    controls = frame.controls()
    chosen = widgets.draw("lab", controls)
    title = next(iter(sides))
    if chosen not in OF_ALL_SIDES:
        unlabelled = {"label_visibility": "collapsed", "width": "content"}
        title = widgets.draw("side", controls, unlabelled, options=list(sides), default=title)
    line = st.container(horizontal=True, vertical_alignment="bottom", key="lab_row")
    side = sides[title]
    encoding = trace.texts[side]
    labels = [f"{i} {token}" for i, token in enumerate(encoding.tokens)]

    if not trace.sides[side].table and chosen not in OF_ALL_SIDES:
        frame.finding("How far each pair of numbers is rotated")
        angles = position_results.rotation_of(shown)
        matrices(
            [
                Matrix(
                    "Cosine of the angle",
                    np.cos(angles),
                    *(POSITION, "pair", labels),
                    largest=1,
                    ends=("{}", "{}"),
                    first=0,
                )
            ],
            key="rotation",
        )
        st.caption(
            "This model adds no table. It rotates each query and key, two numbers at a time, by an "
            "angle that grows with the position (rotary positions, Su et al. 2021). Shown: the "
            "cosine of that angle, from the fastest pair to the slowest. Two tokens are compared "
            "by the difference of their angles, that is, by their distance."
        )
    elif chosen in DRAW_SECTION:
        DRAW_SECTION[chosen](Lab(shown, trace, side, projector, line))
    else:
        table, token, embedded = trace.table[side], trace.token[side], trace.embedded[side]
        largest = float(max(np.abs(values).max() for values in (table, token, embedded)))
        panels = {
            "Positions": (
                "The positional table",
                "These numbers come from the model. They are the same for every sentence. "
                f"{notices.positions(shown.view.model)}",
                table,
                None,
            ),
            "Words": (
                part_names.token_title(shown.view.model),
                "What the words contribute: the same row wherever the token stands.",
                token,
                largest,
            ),
            "Scaled": (
                "The table again, on the same scale as the sum",
                "How much of the input is position.",
                table,
                largest,
            ),
            "Sum": (
                "Their sum, the input of layer 1",
                "Embedding plus table, number by number.",
                embedded,
                largest,
            ),
        }
        shown = widgets.draw("picture", line, options=list(panels), default=next(iter(panels)))
        title, caption, values, scale = panels[shown]
        chosen_position = widgets.draw("position", line, options=[NO_CELL, *labels])
        dimension = widgets.draw(
            "dimension",
            line,
            {"format_func": "dimension {}".format},
            options=range(values.shape[1]),
        )
        cell = None
        if chosen_position != NO_CELL:
            cell = labels.index(chosen_position), dimension
            numbers = {name: each[2][cell] for name, each in panels.items() if name != "Scaled"}
            frame.finding(input_number(cell, encoding.tokens[cell[0]], numbers))
        else:
            frame.finding(f"{title}. {caption}")
        row, column = cell or (-1, -1)
        matrices(
            [
                Matrix(
                    title,
                    values,
                    *(POSITION, "dimension", labels),
                    largest=scale or 0,
                    ends=("{}", "{}"),
                    first=0,
                    follow=row,
                    column=column,
                    chooses="position",
                    chooses_column="dimension",
                    single=True,
                    pinned=cell is not None,
                )
            ],
            key="input",
            on_choose=partial(choose_cell, labels),
        )

    if chosen not in DRAW_SECTION:
        frame.explanation().latex(FORMULA)
    if chosen not in RELATIVE:
        frame.explain(
            "Attention alone cannot tell “dog bites man” from “man bites dog”. So a **table** with "
            "one row per position is added to the words. In “Attention Is All You Need” it holds "
            "sines and cosines.",
            exercises.REPEATED if chosen not in DRAW_SECTION and trace.sides[side].table else None,
        )


def input_number(cell: tuple[int, int], token: str, numbers: Mapping[str, float]) -> str:
    """One number of the input of layer 1 and what it is made of; `cell`: position and dimension."""
    table, word, total = (f"{numbers[name]:.3f}".replace("-", "−") for name in numbers)
    return (
        f"Position {cell[0]}, “{escaped(token)}”, dimension {cell[1]}: **{table}** in the "
        f"positional table, **{word}** in the embedding, **{total}** in the input of layer 1."
    )
