"""The drawer of the header: everything that is chosen and does not stand beside what it acts on. It
is drawn while it is open."""

import random
from contextlib import contextmanager
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from headlight.app import selection
from headlight.app.components.controls import player
from headlight.app.components.page_links import page_links
from headlight.app.results import layer_results, word_results
from headlight.app.server import lan
from headlight.app.shell import (
    edits,
    effect_numbers,
    errors,
    head_numbers,
    masks,
    more_changes,
    output,
    running_lesson,
    stage,
    sweeps,
)
from headlight.app.shell.layout import concerns, draw_settings
from headlight.app.state import catalog, session, widgets
from headlight.app.state.pages import ELSEWHERE, PAGES, PYTORCH, Page
from headlight.app.text import findings, formats
from headlight.model.analysis.attribution import source_kind

TABLE = "Every token after each layer, in numbers"
WORDS = "Each word, by every method, in numbers"
ANY = "Random example"


def draw(page: Page) -> None:
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
        links = [(each.view or each.title, each.path, each == page) for each in PAGES.values()]
        if not session.context().lacks:
            links.append(("PyTorch", f"?{urlencode(PYTORCH)}", False))
        page_links("menu", [one for one in links if one[1] not in ELSEWHERE], page.path)
        is_read = session.context().structure is not None
        with _part("Sentence"):
            draw_settings(("source", "line"), label_visibility="collapsed")
            _draw_examples()
            if is_read:
                output.draw_output()
        with _part("Model"):
            draw_settings(("model",), label_visibility="collapsed")
            if message := catalog.random_weights(session.values()["model"]):
                st.caption(message)
            if is_read and concerns("step"):
                _draw_steps()
        if is_read:
            _draw_rest(page)
        with _part("Here"):
            _draw_here()


def _draw_rest(page: Page) -> None:
    """What takes a model that can be read."""
    if masks.there():
        with _part("Masks and padding"):
            masks.draw()
    if session.context().can_change:
        with _part("More changes"):
            more_changes.draw_changes(page)
        with st.container(horizontal=True):
            _draw_undo()
    with _part("Picture"):
        widgets.draw("colours")
    if not (running_lesson.veils() or running_lesson.veils_ahead()):
        _draw_numbers()


def _draw_examples() -> None:
    """The example sentences of the selected model."""
    known = catalog.examples(session.values()["model"])
    if len(known) > 1:
        st.menu_button(
            "",
            [*known, ANY],
            icon=":material/menu_book:",
            help="Example sentences",
            key="example",
            on_click=_take_example,
            args=(known,),
            format_func=formats.escaped,
            type="tertiary",
        )


def _take_example(known: list[str]) -> None:
    chosen = st.session_state["example"]
    if chosen == ANY:
        chosen = random.choice([text for text in known if text != session.values()["source"]])
    if chosen:
        session.choose(source=chosen, target="")


def _draw_steps() -> None:
    chosen = session.values()
    steps = list(catalog.steps(chosen["model"]))
    player(steps, chosen["step"], on_step=lambda step: session.choose(step=step))
    widgets.draw("step", widget_options={"width": 130, "label_visibility": "collapsed"})


def _draw_undo() -> None:
    for by, what, key in ((-1, "undo", "u"), (1, "redo", "y")):
        st.button(
            "",
            icon=f":material/{what}:",
            on_click=edits.undo_or_redo,
            args=(by,),
            disabled=not session.history().can(by),
            help=f"{what.capitalize()} ({key.upper()})",
            shortcut=key,
            key=what,
        )
    changed = session.changed_settings()
    st.button(
        "",
        icon=":material/restart_alt:",
        on_click=session.reset,
        args=changed,
        disabled=not changed,
        help="Back to the model as trained (X)",
        shortcut="x",
        key="as_trained",
    )


def _draw_here() -> None:
    """The keys, the device, the address for a class, and what each model is."""
    st.button("Keys", key="keys", icon=":material/keyboard:")
    widgets.draw("device")
    if address := lan.class_address():
        st.markdown(f"Address for the class: **{address}**")
        st.image(lan.qr_code(address), width=260)
    cards, chosen = catalog.cards(), session.values()["model"]
    if chosen in cards:
        st.markdown(f"**{formats.escaped(chosen)}**: {cards.pop(chosen)}")
    with st.expander("Other models"):
        for name, card in cards.items():
            st.markdown(f"**{formats.escaped(name)}**: {card}")


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
