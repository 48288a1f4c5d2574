"""The views of the page Heads: all heads as a table or a scatter plot, or the sentences that show
the selected head best."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd
import streamlit as st

from headlight.app import charts, selection, theme
from headlight.app.components.figure import figure
from headlight.app.components.thumbnails import thumbnails
from headlight.app.results import head_results
from headlight.app.results.shown import Shown
from headlight.app.shell.layout import st_page
from headlight.app.state import session, widgets
from headlight.app.state.catalog import ModelView
from headlight.app.state.pages import HOME, PAGES
from headlight.app.state.settings import SETTINGS
from headlight.app.text import exercises, formats, head_card
from headlight.app.text.exercises import Exercise
from headlight.app.views import _head_table
from headlight.model.analysis.head_metrics import Measured
from headlight.model.rounding import percent
from headlight.model.surveys.clearest import ClearExample, nearest_habit, surveyed_habit
from headlight.model.surveys.survey import Survey

TOP, ROW, MOST = 41, 44, 560  # pixels: the column headers, a row, and the whole table
TABLE, SENTENCES, FIGURE = "heads_table", "sentences_table", "heads_figure"
LETTER = 8  # pixels
PICTURE, HEIGHT = 70, 310  # pixels: of the weights, and of the scatter plot
N_SENTENCES = 8  # sentences shown for a head


@dataclass(frozen=True)
class Heads:
    """The heads to show: rows of the table, what they were measured on, in words, and the survey,
    if any."""

    rows: Sequence[Mapping]
    measured_on: str
    survey: Survey | None

    @property
    def all(self) -> list[tuple]:
        return [*map(_head_of, self.rows)]

    @property
    def selected(self) -> int | None:
        """The row of the selected head, if it is in the table."""
        return self.all.index(head) if (head := _selected()) in self.all else None

    def choose(self, row: int) -> None:
        """Select a head. A callback. Ignores a head that is already selected: Streamlit repeats the
        selection with other events."""
        if self.all[row] != _selected():
            session.choose(**dict(zip(("kind", "layer", "head"), self.all[row], strict=True)))


def _selected() -> tuple:
    chosen = session.values()
    return chosen["kind"], chosen["layer"], chosen["head"]


def _head_of(row: Mapping) -> tuple:
    return row["attention"], row["layer"], row["head"]


def table(heads: Heads) -> None:
    """All heads, the best of a pattern on top, or else the one that was selected when the table was
    opened: it cannot be scrolled to its selected row. Selecting another one here moves nothing."""
    notes = session.memo()
    if widgets.is_new(TABLE):
        notes.opened_on = _selected()
    if _head_table.SCORE not in heads.rows[0]:
        rows = sorted(heads.rows, key=lambda row: _head_of(row) != notes.opened_on)
        heads = replace(heads, rows=rows)

    def select() -> None:
        for row in widgets.clicked_rows(TABLE):
            heads.choose(row)

    widgets.select_row(TABLE, heads.selected)
    frame = pd.DataFrame([_written(row) for row in heads.rows])
    columns = {name: _column(name, heads.survey is not None, frame) for name in frame.columns}
    signed = {
        name: partial(formats.signed, digits=_head_table.digits_of(name, heads.survey is not None))
        for name in frame.select_dtypes("number")
        if _head_table.is_signed(name)
    }
    height = TOP + ROW * len(heads.rows)
    is_long = height > MOST
    # As high as the window has room, see theme.py.
    box = st.container(key="heads_box", height=MOST, border=False) if is_long else st
    box.dataframe(
        frame.style.format(signed, na_rep=""),
        key=TABLE,
        hide_index=True,
        height="stretch" if is_long else height,
        row_height=ROW,
        on_select=select,
        selection_mode=widgets.ROW_OR_CELL,
        column_config=columns,
        alt=f"Every head in numbers: {heads.measured_on}",
    )


def _written(row: Mapping) -> dict:
    """A row with its intervals as text."""
    return {
        name: _head_table.interval(
            value, _head_table.digits_of(name.removesuffix(head_card.INTERVAL), True)
        )
        if name.endswith(head_card.INTERVAL)
        else value
        for name, value in row.items()
    }


def _column(name: str, surveyed: bool, frame: pd.DataFrame):
    """The configuration of a column of a table."""
    config, digits = st.column_config, _head_table.digits_of(name, surveyed)
    if name == "weights":
        return config.ImageColumn(
            width=PICTURE, help=f"For the sentence above. {theme.MASKED['cells']}"
        )
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
    if name in _head_table.PERCENTAGES:
        return config.NumberColumn(format="%.0f%%")
    if unit := _head_table.UNITS.get(name):
        return config.NumberColumn(f"{name} ({unit})", format=f"%.{digits}f")
    if name.startswith(_head_table.ABLATION_COLUMN):
        return config.NumberColumn(help=_head_table.ablated(name))
    return config.Column()


def scatter(heads: Heads, projector: bool) -> None:
    numbers = _head_table.numbers_of(heads.rows)
    if not numbers:
        st.info("No head can be measured here: no row has more than one key to choose from.")
        return
    look = {"width": 240, "label_visibility": "collapsed"}
    with st.container(horizontal=True, vertical_alignment="center"):
        up = widgets.draw("up", options=numbers, default=numbers[0], widget_options=look)
        st.markdown("against", width="content")
        first = SETTINGS["across"].default
        first = first if first in numbers else numbers[0]
        across = widgets.draw("across", options=numbers, default=first, widget_options=look)

    def select() -> None:
        for point in st.session_state[FIGURE].selection.points:
            heads.choose(point["customdata"])

    drawn = charts.scatter(
        _head_table.points(heads.rows, across, up), across, up, heads.selected, HEIGHT
    )
    with st.container(key="scatter_box", height=HEIGHT, border=False):
        figure(
            drawn,
            key=FIGURE,
            alt=f"Every head as a point, {up} against {across}: {heads.measured_on}",
            projector=projector,
            fills=True,
            on_select=select,
        )


def sentences(view: ModelView, measured: Measured, survey: Survey | None) -> Exercise | None:
    """The sentences in which the selected head shows most clearly what it is named for, and an
    exercise on them; `measured`: measures of its kind."""
    focus, number = session.focus(), session.values()["layer"] - 1
    habit = survey and surveyed_habit(survey, focus.kind, number, focus.head)
    habit = habit or nearest_habit(measured, focus.layer, focus.head)
    runs, examples = selection.sentence_runs(), []
    runs = {line: run for line, run in runs.items() if Shown(view, run).is_whole}
    if habit and runs:
        examples = head_results.clearest_in(view, [*runs.values()], habit, focus)
    if not examples or habit is None:
        st.info("No sentence here is long enough to show this head's pattern.")
        return None
    lines = [*runs]
    shown = [(lines[example.sentence], example) for example in examples[:N_SENTENCES]]

    def select() -> None:
        for row in widgets.clicked_rows(SENTENCES):
            if shown[row][0] != session.values()["line"]:
                session.read_line(shown[row][0])

    def row_of(line: str, example: ClearExample) -> dict:
        weights = Shown(view, runs[line]).head(focus)
        ((picture,),) = thumbnails({focus.kind: weights[None, None]}, session.stops())[focus.kind]
        scale = 100 if habit.is_share else 1
        numbers = {habit.name: scale * example.value, "uniform head": scale * example.uniform}
        return {"weights": picture} | numbers | {"sentence": line}

    read = [i for i, (line, _) in enumerate(shown) if line == session.values()["line"]]
    widgets.select_row(SENTENCES, read[0] if read else None)
    number = st.column_config.NumberColumn(format="%.0f%%" if habit.is_share else "%.1f")
    st.dataframe(
        pd.DataFrame([row_of(*pair) for pair in shown]),
        key=SENTENCES,
        hide_index=True,
        height=min(MOST - 2 * ROW, TOP + ROW * len(shown)),
        row_height=ROW,
        on_select=select,
        selection_mode=widgets.ROW_OR_CELL,
        column_config={"weights": st.column_config.ImageColumn(width=PICTURE)}
        | {name: number for name in (habit.name, "uniform head")},
        alt=f"Sentences that show the selected head's pattern best, {habit.name}",
    )
    st.caption(_head_table.sentences_explained(habit.name, selection.MOST_LINES))
    st.page_link(
        st_page(PAGES[HOME]),
        label=f"Open {PAGES[HOME].title}",
        icon=":material/arrow_forward:",
        icon_position="right",
    )
    (_, first), *_, (_, last) = shown[0], *shown
    write = percent if habit.is_share else "{:.1f}".format
    shares = map(write, (first.value, last.value, last.uniform))
    return exercises.first_and_last(habit.name, *shares)
