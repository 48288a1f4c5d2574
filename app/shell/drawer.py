"""The drawer of the stage: everything that is chosen and does not stand beside what it acts on. It
is drawn while it is open."""

from contextlib import contextmanager

import streamlit as st

from headlight.app import selection
from headlight.app.results import layer_results
from headlight.app.shell import bar, output, page_row, panel, stage, state_strip
from headlight.app.shell.layout import concerns, draw_settings
from headlight.app.state import session, widgets
from headlight.app.state.messages import NothingToShow
from headlight.app.state.pages import Page
from headlight.app.text import formats
from headlight.model.probing.changes import CannotChange
from headlight.model.probing.trace import CannotRead

TABLE = "Every token after each layer, in numbers"


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
        page_row.draw_views(page)
        with _part("Sentence"):
            draw_settings(("source", "line"))
            bar.draw_examples()
            if session.context().structure is None:
                return
            output.draw_output(is_on_page=True)
        with _part("Model"):
            draw_settings(("model", "step"))
        if concerns("causal"):
            with _part("Masks and padding"):
                panel.draw_masks()
        if session.context().can_change:
            with _part("More changes"):
                page_row.draw_changes(page)
            with st.container(horizontal=True):
                state_strip.draw_undo()
        with _part("Picture"):
            widgets.draw("colours")
        _draw_numbers()
        with st.container(horizontal=True):
            bar.draw_share()
            bar.draw_more()


def _draw_numbers() -> None:
    """The vectors of all tokens as a table, which is computed while it is open."""
    table = st.expander(TABLE, key="vectors", on_change="rerun")
    if not table.open:
        return
    try:
        shown = selection.shown()
        if lacks := shown.view.checkpoint.lacks:
            raise CannotRead(lacks)
        table.dataframe(
            layer_results.vectors_of(shown), hide_index=True, alt="Every token after each layer"
        )
    except (CannotRead, CannotChange, NothingToShow) as error:
        table.markdown(formats.escaped(str(error)))


@contextmanager
def _part(title: str):
    with st.container(gap="xsmall"):
        st.markdown(f"**{title}**")
        yield
