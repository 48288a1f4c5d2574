"""The menu that selects a head, for pages that show one head and not all of them."""

from contextlib import suppress

import streamlit as st

from headlight.app import selection
from headlight.app.shell.layout import draw_settings, head_label, menu
from headlight.app.state import messages, session, widgets
from headlight.app.state.options import CLEAREST_ROW, LARGEST_WEIGHT
from headlight.app.state.pages import Page
from headlight.model.probing.changes import CannotChange
from headlight.model.probing.trace import CannotRead

OF_A_CELL = ("compare",)  # pages where a query is clicked in the picture


def draw(page: Page) -> None:
    """Kind of attention, layer and head in one menu, named by what is selected."""
    with menu(head_label(), "head_picker") as picker:
        if not picker.open:
            return
        with st.container(horizontal=True):
            draw_settings(("kind", "layer", "head"))
        if page.key in OF_A_CELL:
            with st.container(horizontal=True):
                _draw_cell()


def _draw_cell() -> None:
    """The selected query and key, which are usually clicked in the picture."""
    focus, firsts = session.focus(), {"follow": CLEAREST_ROW, "to": LARGEST_WEIGHT}
    if not session.values()["line"]:
        return
    with suppress(messages.NothingToShow, CannotChange, CannotRead):  # the page says why
        trace = selection.shown().trace
        texts = dict(zip(firsts, trace.texts_of(focus.kind), strict=True))
        names = {"follow": trace.row_words(*focus)}
        for key in firsts:
            widgets.draw_token(key, texts[key].tokens, firsts[key], {}, names.get(key, ()))
