"""A table of the drawer: what every head, sublayer and token contributes."""

from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from headlight.app import selection
from headlight.app.results import sweep_results
from headlight.app.shell import edits, head_numbers, sweeps
from headlight.app.state import session, widgets
from headlight.app.state.options import SWEEPS
from headlight.app.text import formats, part_names
from headlight.app.text.formats import signed

TABLE, TABLE_HEIGHT = "effects_table", 400  # pixels


def draw() -> None:
    """The table while it is unfolded; a row selects its head."""
    fold = widgets.draw("all_effects")
    if not fold.open:
        return
    with fold:
        _draw_effects()


def _draw_effects() -> None:
    shown = selection.shown()
    view, trace = shown.view, shown.trace
    name = SWEEPS[widgets.draw("sweep", widget_options={"label_visibility": "collapsed"})]
    sweeps.draw_score(trace)
    shown = replace(shown, run=replace(shown.run, other=selection.other_run()))
    if (tokens := sweep_results.tokens_of_sweep(shown, name)) > (
        most := sweep_results.most_tokens(view)
    ):
        st.info(too_large_a_sweep(tokens, most))
        return
    score = sweeps.score(shown)
    swept = sweeps.sweep_of(shown, name, score)
    rows = sweeps.table(swept, trace)
    if sentence := sweeps.most_needed(swept, trace, name, score, view.checkpoint.outputs):
        st.markdown(formats.as_markdown(sentence))
    heads = sweeps.settings(swept)
    focus = {key: session.values()[key] for key in ("kind", "layer", "head")}
    if name == "heads" and focus in heads:
        title = part_names.head_name(trace, session.focus())
        of_head = sweeps.of_head(
            swept,
            heads.index(focus),
            title,
            trace,
            score,
            view.checkpoint.outputs,
            head_numbers.over_all(),
        )
        is_off = edits.is_off(session.focus())
        st.markdown(f"{title} is off." if is_off else formats.as_markdown(of_head))
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
    assert isinstance(swept.score, float)
    measure = "log-probability" if sweeps.is_probability(trace, score) else "metric"
    st.caption(sweep_explained(measure, swept.score, session.context().has_other))


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
        else (" To patch heads or the residual stream, choose a comparison under *More changes*.")
    )
    return (
        f"**Effect**: {measure} after the change minus before ({signed(score)}). Below 0: the "
        f"output needs this part. A click on a row selects its head.{more}"
    )
