"""Tables of the drawer: the selected head's weights, every head in numbers, and sentences that show
the selected one best."""

from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from headlight.app import selection
from headlight.app.results import head_results, memoize, sweep_results
from headlight.app.results.head_table import (
    ABLATION_COLUMN,
    PERCENTAGES,
    UNITS,
    ablated,
    digits_of,
    head_table,
    interval,
    is_signed,
    sentences_explained,
    surveyed_on,
)
from headlight.app.results.shown import Shown
from headlight.app.shell import running_lesson, sweeps
from headlight.app.state import catalog, session, widgets
from headlight.app.state.options import EXAMPLES, SURVEY, THIS_SENTENCE
from headlight.app.text import formats, head_card, notices, part_names
from headlight.model.analysis.head_metrics import THRESHOLD, Measured
from headlight.model.analysis.reading import as_table
from headlight.model.probing.sites import Place
from headlight.model.rounding import percent
from headlight.model.surveys.clearest import nearest_habit, surveyed_habit
from headlight.model.surveys.survey import Survey

HEADS, SENTENCES = "heads_table", "sentences_table"
HEIGHT = 400  # pixels
LETTER = 8  # pixels
N_SENTENCES = 8  # sentences shown for a head
MAX_TABLE_ROWS = 20_000  # of weights
HEAD = "kind", "layer", "head"


def draw() -> None:
    """All tables, each while it is unfolded, and what is known of the selected head."""
    shown = selection.shown()
    _draw_weights(shown)
    view = shown.view
    survey, why_none, is_faulty = head_results.survey_of(view)
    fold, clearest = widgets.draw("all_heads"), widgets.draw("clearest")
    if not (fold.open or clearest.open):
        return
    with fold:
        measured_on = widgets.draw(
            "measured_on",
            options=[
                THIS_SENTENCE,
                *([EXAMPLES] if catalog.examples(view.name) else []),
                *([] if view.checkpoint.lacks else [SURVEY]),
            ],
            default=SURVEY if survey else THIS_SENTENCE,
        )
    over = survey if measured_on == SURVEY else None
    if measured_on == EXAMPLES:
        measured = head_results.measured_over(view, selection.example_runs())
    elif over:
        measured = head_results.surveyed_of(shown, over)
    else:
        measured = head_results.measured_of(shown)
    if fold.open:
        with fold:
            if not over and (measured_on == SURVEY or is_faulty):
                st.info(why_none)
            _draw_card(shown, survey)
            _draw_heads(_rows(shown, measured, measured_on, over), measured_on, over)
            st.caption(
                surveyed_on(over, shown == shown.as_trained)
                if over
                else "Match: 100% is a perfect example; 0% attends equally to all tokens (for "
                f"“broad”: to one token). From {percent(THRESHOLD)} on, a head has the pattern. "
                "Shares are means over rows with more than one key, without padding."
            )
    if clearest.open:
        with clearest:
            _draw_sentences(shown, measured, over)


def _draw_weights(shown: Shown) -> None:
    table, focus = widgets.draw("numbers"), session.focus()
    if not table.open:
        return
    query, key = part_names.axes(shown.trace, focus)
    columns, n_omitted = as_table(shown.head(focus), query.labels, key.labels, MAX_TABLE_ROWS)
    if n_omitted:
        table.caption(
            f"The {MAX_TABLE_ROWS:,} largest weights. {n_omitted:,} smaller ones are left out."
        )
    name = f"Weights of {part_names.head_name(shown.trace, focus)}"
    table.dataframe(pd.DataFrame(columns), hide_index=True, alt=name)


def _rows(
    shown: Shown, measured: Mapping[str, Measured], measured_on: str, over: Survey | None
) -> list[dict]:
    if over:
        rows = partial(head_table, measured, shown.trace, {}, over)
        return memoize.memoize_pass(
            shown, ("rows of heads", over), rows, lambda rows: 1000 * len(rows)
        )
    # The effect of each head is of this sentence.
    knows = measured_on == THIS_SENTENCE and sweep_results.is_quick(shown)
    return head_table(measured, shown.trace, sweeps.by_head(shown, "heads") if knows else {})


def _draw_card(shown: Shown, survey: Survey | None) -> None:
    """What is known of the selected head, and of weights that the masks would hide."""
    focus = session.focus()
    numbered = focus._replace(layer=session.values()["layer"] - 1)  # as the model counts layers
    st.markdown(f"**{part_names.head_name(shown.trace, focus)}**")
    gone = head_card.is_pruned(shown.view.checkpoint.card, numbered)
    card = head_results.card_of(shown, focus)
    st.markdown(head_card.PRUNED if gone else f"*In this sentence*: {card}")
    if survey:
        st.markdown(head_card.in_all_sentences(survey, numbered))
        _draw_importance()
    for leak in shown.leaks:
        st.markdown(notices.leak(shown.trace, leak))


def _draw_heads(rows: Sequence[Mapping], measured_on: str, survey: Survey | None) -> None:
    """All heads, the selected one on top when the table is unfolded: it cannot be scrolled to its
    selected row. Selecting another one here moves nothing."""
    chosen, notes = session.values(), session.memo()
    selected = tuple(chosen[key] for key in HEAD)
    if widgets.is_new(HEADS):
        notes.opened_on = selected

    def head_of(row: Mapping) -> tuple:
        return row["attention"], row["layer"], row["head"]

    rows = sorted(rows, key=lambda row: head_of(row) != notes.opened_on)
    heads = [*map(head_of, rows)]

    def select() -> None:
        for row in widgets.clicked_rows(HEADS):
            if heads[row] != selected:  # Streamlit repeats the selection with other events
                session.choose(**dict(zip(HEAD, heads[row], strict=True)))

    widgets.select_row(HEADS, heads.index(selected) if selected in heads else None)
    frame = pd.DataFrame([_written(row) for row in rows])
    signed = {
        name: partial(formats.signed, digits=digits_of(name, survey is not None))
        for name in frame.select_dtypes("number")
        if is_signed(name)
    }
    st.dataframe(
        frame.style.format(signed, na_rep=""),
        key=HEADS,
        hide_index=True,
        height=HEIGHT,
        on_select=select,
        selection_mode=widgets.ROW_OR_CELL,
        column_config={name: _column(name, survey is not None, frame) for name in frame.columns},
        alt=f"Every head in numbers: {measured_on}",
    )


def _written(row: Mapping) -> dict:
    """A row with its intervals as text."""
    return {
        name: interval(value, digits_of(name.removesuffix(head_card.INTERVAL), True))
        if name.endswith(head_card.INTERVAL)
        else value
        for name, value in row.items()
    }


def _column(name: str, surveyed: bool, frame: pd.DataFrame):
    """The configuration of a column of the table."""
    config, digits = st.column_config, digits_of(name, surveyed)
    if name in ("layer", "head"):
        return config.Column(width=50)
    if name == "named":  # the browser measures the first rows alone
        return config.Column(width=max(60, 20 + LETTER * int(frame[name].str.len().max())))
    if name.endswith(head_card.INTERVAL):
        return config.TextColumn(
            "95% interval", help=f"of “{name.removesuffix(head_card.INTERVAL)}”"
        )
    if name.endswith(head_card.P):
        return config.NumberColumn(
            "p", format="%.3f", help="Corrected for testing all heads (Holm)."
        )
    if name in PERCENTAGES:
        return config.NumberColumn(format="%.0f%%")
    if unit := UNITS.get(name):
        return config.NumberColumn(f"{name} ({unit})", format=f"%.{digits}f")
    if name.startswith(ABLATION_COLUMN):
        return config.NumberColumn(help=ablated(name))
    return config.Column()


def _draw_sentences(shown: Shown, measured: Mapping[str, Measured], survey: Survey | None) -> None:
    """Those in which the selected head shows most clearly what it is named for."""
    view, focus, number = shown.view, session.focus(), session.values()["layer"] - 1
    habit = survey and surveyed_habit(survey, focus.kind, number, focus.head)
    habit = habit or nearest_habit(measured[focus.kind], focus.layer, focus.head)
    runs = selection.sentence_runs()
    runs = {line: run for line, run in runs.items() if Shown(view, run).is_whole}
    examples = head_results.clearest_in(view, [*runs.values()], habit, focus) if habit else []
    if not examples or habit is None:
        st.info("No sentence here is long enough to show this head's pattern.")
        return
    lines = [*runs]
    clearest = [(lines[example.sentence], example) for example in examples[:N_SENTENCES]]

    def select() -> None:
        for row in widgets.clicked_rows(SENTENCES):
            if clearest[row][0] != session.values()["line"]:
                session.read_line(clearest[row][0])

    scale = 100 if habit.is_share else 1
    rows = [
        {habit.name: scale * one.value, "uniform head": scale * one.uniform, "sentence": line}
        for line, one in clearest
    ]
    read = [i for i, (line, _) in enumerate(clearest) if line == session.values()["line"]]
    widgets.select_row(SENTENCES, read[0] if read else None)
    column = st.column_config.NumberColumn(format="%.0f%%" if habit.is_share else "%.1f")
    st.dataframe(
        pd.DataFrame(rows),
        key=SENTENCES,
        hide_index=True,
        on_select=select,
        selection_mode=widgets.ROW_OR_CELL,
        column_config=dict.fromkeys((habit.name, "uniform head"), column),
        alt=f"Sentences that show the selected head's pattern best, {habit.name}",
    )
    st.caption(sentences_explained(habit.name, selection.MOST_LINES))


def _surveyed() -> tuple[Survey, Place] | None:
    """A survey of the model and the selected head in it; None without one, or while a lesson asks
    something."""
    survey, *_ = head_results.survey_of(selection.view())
    if running_lesson.veils() or not survey:
        return None
    return survey, session.focus()._replace(layer=session.values()["layer"] - 1)


def over_all() -> str:
    """What a survey found of the selected head, as the end of a sentence; or ""."""
    return head_card.over_all(*place) if (place := _surveyed()) else ""


def _draw_importance() -> None:
    """Whether the selected head is important, if that is known, and by how much."""
    verdict, change = head_card.importance(*place) if (place := _surveyed()) else ("", "")
    if verdict:
        st.caption(f"{verdict} {change}")
