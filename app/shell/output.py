"""The model's output, as a menu in which the target is edited; numbers that are not finite."""

from contextlib import suppress

import streamlit as st

from headlight.app import selection
from headlight.app.results import passes
from headlight.app.shell.effect import model_output, new_translation
from headlight.app.shell.layout import concerns, is_chosen, menu
from headlight.app.state import messages, session, widgets
from headlight.app.text import formats, notices
from headlight.model.probing.changes import CannotChange
from headlight.model.probing.trace import CannotRead


def draw_not_finite() -> None:
    with suppress(messages.NothingToShow, CannotChange, CannotRead):  # the page says why
        if session.values()["line"]:
            run = selection.run()
            problems = passes.not_finite_of(selection.view(run), run)
            if any(problems):
                messages.show_message(notices.not_finite(*problems))


def draw_output() -> None:
    """The model's output; for a translation, a menu in which the target is edited, and a button for
    what the changed model writes."""
    title, text = model_output()
    label = f"**{formats.escaped(title)}:** {formats.escaped(text)}" if title else "Target"
    if not concerns("target"):
        if title:
            st.markdown(label, width="content")
        return
    with menu(
        label, "output", type="tertiary", help="Edit the target, or translate again"
    ) as output:
        if output.open or is_chosen("target"):
            widgets.draw("target", widget_options={"placeholder": text})
        if output.open:
            _draw_ways(text)
        if concerns("hold") and (output.open or is_chosen("hold")):
            widgets.draw("hold")
    if new_translation():
        st.button(
            "Use the new translation",
            icon=":material/translate:",
            on_click=selection.translate_again,
            help="The decoder then reads the new translation.",
            key="use_new_translation",
        )


def _draw_ways(text: str) -> None:
    """To another target than the one that the model wrote, `text`."""
    with st.container(horizontal=True):
        if not session.values()["target"] and text:
            st.button(
                "Edit",
                icon=":material/edit:",
                on_click=session.choose,
                kwargs={"target": text},
                help="Edit the text that the decoder reads",
                key="edit_target",
            )
        st.button(
            "Translate again with the current settings",
            icon=":material/translate:",
            on_click=selection.translate_again,
            help="The decoder then reads the result.",
            key="translate_again",
        )
