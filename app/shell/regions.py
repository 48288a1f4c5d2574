"""What is drawn by itself, without the rest of the screen: what is said of the selected head.

A click on a small map paints the large picture in the browser. Here the server adds the rest: one
run of this region instead of one of the whole script, which draws five times as much.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from headlight.app.server.garbage import collect_garbage
from headlight.app.shell import errors, frame, page_row, panel, room_acts, running_lesson
from headlight.app.shell.frame import Frame
from headlight.app.state import session
from headlight.app.state.pages import Page

SELECTED_HEAD = "selected_head"
SELECTION = "kind", "layer", "head", "follow", "to"  # settings that the region draws


@st.fragment(key=SELECTED_HEAD)
def draw_selected_head(
    page: Page, places: Frame, picker: DeltaGenerator, draws: Sequence[Callable[[], None]]
) -> None:
    """Draw the picker of the head, what is done to it, and what the page says of it by `draws`, see
    frame.of_selected_head."""
    alone = not session.is_running()
    with (
        room_acts.share() if alone else nullcontext(),
        session.running(page.key) if alone else nullcontext(),
    ):
        with picker:
            card = page_row.draw_picker(page, on_change=st.rerun)
        numbers = card if page.alone else places.numbers
        with frame.of_page(replace(places, hero=nullcontext(), numbers=numbers)):
            for draw in draws:
                with errors.errors_as_messages():
                    draw()
        if page.alone:
            with picker:
                panel.draw_peek(then=st.rerun)
        elif "switch_head" not in page.idle:
            with places.change:
                panel.draw_head(then=st.rerun)
                panel.draw_importance()
        if alone:
            room_acts.lead(page)
    if alone:
        collect_garbage()


def select_head(**focus) -> None:
    """Select a head, as session.focus_on does. A callback."""
    session.focus_on(**focus)
    _draw_region()


def select_cell(query: int, key: int) -> None:
    """Choose the query and the key that pages about one cell show, as session.choose_cell does. A
    callback."""
    session.choose_cell(query, key)
    _draw_region()


def _draw_region() -> None:
    """Draw the region alone, if all else stands on the screen as it is; or else, in a callback
    that returns, the whole script runs."""
    if session.shows_all_but(SELECTION) and not running_lesson.running():
        st.rerun(SELECTED_HEAD)
