"""The drawer of the stage: everything that is chosen and does not stand beside what it acts on. It
is drawn while it is open."""

from contextlib import contextmanager

import pandas as pd
import streamlit as st

from headlight.app import selection
from headlight.app.results import layer_results, word_results
from headlight.app.shell import (
    bar,
    effect_numbers,
    errors,
    head_numbers,
    output,
    page_row,
    panel,
    running_lesson,
    stage,
    state_strip,
    sweeps,
)
from headlight.app.shell.layout import draw_settings
from headlight.app.state import catalog, session, widgets
from headlight.app.state.pages import Page
from headlight.app.text import findings, formats
from headlight.model.analysis.attribution import source_kind

TABLE = "Every token after each layer, in numbers"
WORDS = "Each word, by every method, in numbers"


def draw(page: Page, logo: str) -> None:
    """All of it, in a container of its own."""
    with st.container(key="drawer", gap="small"):
        st.button(
            "",
            icon=":material/close:",
            help="Close (Esc)",
            key="close_drawer",
            on_click=stage.close_drawer,
            type="tertiary",
        )
        bar.draw_menu(logo, page)
        is_read = session.context().structure is not None
        with _part("Sentence"):
            draw_settings(("source", "line"), label_visibility="collapsed")
            bar.draw_examples()
            if is_read:
                output.draw_output()
        with _part("Model"):
            draw_settings(("model",), label_visibility="collapsed")
            if message := catalog.random_weights(session.values()["model"]):
                st.caption(message)
            if is_read:
                draw_settings(("step",))
        if is_read:
            _draw_rest(page)
        with st.container(horizontal=True):
            bar.draw_share()
            bar.draw_more()


def _draw_rest(page: Page) -> None:
    """What takes a model that can be read."""
    if panel.masks():
        with _part("Masks and padding"):
            panel.draw_masks()
    if session.context().can_change:
        with _part("More changes"):
            page_row.draw_changes(page)
        with st.container(horizontal=True):
            state_strip.draw_undo()
    with _part("Picture"):
        widgets.draw("colours")
    if not (running_lesson.veils() or running_lesson.veils_ahead()):
        _draw_numbers()


def _draw_numbers() -> None:
    with _part("Numbers"), errors.errors_as_messages("_numbers"):
        _draw_probability()
        head_numbers.draw()
        if not session.context().lacks:  # which weights alone do not tell
            effect_numbers.draw()
            _draw_vectors()
            _draw_words()


def _draw_probability() -> None:
    """How the changes move the probability of the whole text that the model predicts."""
    shown = selection.shown()
    before, side = shown.as_trained, shown.trace.predicted
    if before != shown and side.predicts == "next token":
        moved = shown.log_probability, before.log_probability
        st.markdown(findings.probability(side.title, *moved))


def _draw_vectors() -> None:
    """The vectors of all tokens as a table, which is computed while it is open."""
    table = st.expander(TABLE, key="vectors", on_change="rerun")
    if table.open:
        vectors = layer_results.vectors_of(selection.shown())
        table.dataframe(vectors, hide_index=True, alt=TABLE)


def _draw_words() -> None:
    """What each word has to do with one prediction, by every method, likewise."""
    table = st.expander(WORDS, key="words_compared", on_change="rerun")
    if not table.open:
        return
    shown, focus = selection.shown(), session.focus()
    head = (focus.layer, focus.head) if focus.kind == source_kind(shown.view.model) else None
    score = sweeps.score(shown, whole=False)
    found = word_results.attribution_of(shown, score, head)
    table.markdown(formats.escaped(found.in_words()))
    columns = {"word": [*found.words]} | dict(found.values)
    table.dataframe(pd.DataFrame(columns), hide_index=True, alt=WORDS)


@contextmanager
def _part(title: str):
    with st.container(gap="xsmall"):
        st.markdown(f"**{title}**")
        yield
