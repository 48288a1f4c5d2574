"""What every head, sublayer and token contributes: each is changed on its own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from headlight.app import selection
from headlight.app.components.matrices import matrices
from headlight.app.results import sweep_results
from headlight.app.shell import edits, frame, panel, sweeps
from headlight.app.state import messages, session, widgets
from headlight.app.state.options import SWEEPS
from headlight.app.text import formats, part_names
from headlight.app.text.formats import signed

TABLE, TABLE_HEIGHT = "effects_table", 480  # pixels


def choose_head(
    numbers: Sequence[np.ndarray], heads: Sequence[Mapping], panel: int, row: int, column: int
) -> None:
    """Select the head that is changed in the clicked cell of a panel, if it is about one. A
    callback."""
    if row >= 0 and (number := numbers[panel][row, column]) >= 0:
        session.choose(**heads[number])


def page() -> None:
    shown = selection.shown()
    view, trace = shown.view, shown.trace
    with frame.controls():
        name = SWEEPS[widgets.draw("sweep", widget_options={"label_visibility": "collapsed"})]
        sweeps.draw_score(trace, tokens=frame.explanation())
    shown = replace(shown, run=replace(shown.run, other=selection.other_run()))
    if (tokens := sweep_results.tokens_of_sweep(shown, name)) > (
        most := sweep_results.most_tokens(view)
    ):
        st.info(too_large_a_sweep(tokens, most))
        raise messages.NothingToShow
    score = sweeps.score(shown)
    swept = sweeps.sweep_of(shown, name, score)
    rows = sweeps.table(swept, trace)
    if sentence := sweeps.most_needed(swept, trace, name, score, view.checkpoint.outputs):
        # The finding is what a change did, if there is one.
        (frame.explain if frame.effect().said else frame.finding)(formats.as_markdown(sentence))
    heads = sweeps.settings(swept)
    focus = {key: session.values()[key] for key in ("kind", "layer", "head")}
    number = heads.index(focus) if focus in heads else None
    panels = sweeps.panels(swept, trace)
    measure = "log-probability" if sweeps.is_probability(trace, score) else "metric"
    matrices(
        sweeps.pictures(panels, f"the {measure}", number, chooses=any(heads)),
        key="effects",
        on_choose=partial(choose_head, [panel.numbers for panel in panels], heads),
    )
    if name == "heads":
        with st.container(horizontal=True, vertical_alignment="center", key="cell"):
            title = part_names.head_name(trace, session.focus())
            if edits.is_off(session.focus()):
                st.markdown(f"{title} is off.", width="content")
            elif number is not None:
                sentence = sweeps.of_head(
                    swept, number, title, trace, score, view.checkpoint.outputs, panel.over_all()
                )
                st.markdown(formats.as_markdown(sentence), width="content")
            panel.draw_switch(look="secondary")
        panel.draw_importance(is_whole=True)
    with frame.numbers():
        settings = [row["head"] or {} for row in rows]
        widgets.select_row(TABLE, widgets.current_row(settings))
        st.dataframe(
            pd.DataFrame(rows)
            .drop(columns="head")
            .style.format({"effect": partial(formats.signed, digits=3)}),
            key=TABLE,
            hide_index=True,
            height=TABLE_HEIGHT,
            on_select=widgets.row_callback(TABLE, settings),
            selection_mode=widgets.ROW_OR_CELL,
            column_config={
                "part": st.column_config.TextColumn(width=175),
                "effect": st.column_config.NumberColumn(width=90),
            },
            alt=f"Effect of {name}, one row per change",
        )
    with frame.explanation():
        assert isinstance(swept.score, float)
        st.markdown(sweep_explained(measure, swept.score, session.context().has_other))


def too_large_a_sweep(tokens: int, most: int) -> str:
    return (
        f"Changing these one at a time would send {tokens:,} tokens through the model; the "
        f"limit is {most:,}. Use a shorter text, or change whole heads or sublayers."
    )


def sweep_explained(measure: str, score: float, has_other: bool) -> str:
    """What the numbers of a sweep mean; `measure`: what is measured, `score`: before any change."""
    more = (
        ""
        if has_other
        else (" To patch heads or the residual stream, choose a comparison under “What if”.")
    )
    return (
        f"**Effect**: {measure} after the change minus before ({signed(score)}). Below 0: the "
        f"output needs this part. Click a cell, or a row of the table, to select its head.{more}"
    )
