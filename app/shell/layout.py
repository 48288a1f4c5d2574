"""What the regions of the bar share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from headlight.app.state import session, widgets
from headlight.app.state.pages import EXPORT, Page
from headlight.app.state.settings import SETTINGS


def draw_where_open(box, keys: Sequence[str], page: Page) -> None:
    """Settings in a popover. While it is closed, only changed ones are drawn, so that the others
    are not sent with every click. On Export all are drawn: a file may set any, and only an existing
    widget writes its value into the address."""
    for key in filter(concerns, keys):
        chosen = session.values()[key] != SETTINGS[key].default
        if box.open or chosen or page.key == EXPORT:
            widgets.draw(key)


@contextmanager
def menu(label: str, key: str, **options) -> Iterator[DeltaGenerator]:
    """A popover for settings. While it is closed they are drawn hidden beside it: what is drawn
    nowhere in the browser does not hear of a new value and sends its old one with the next click
    (Streamlit 1.67). `options`: further arguments of the popover."""
    widgets.stay_open(key, label)
    popover = st.popover(label, key=key, on_change="rerun", **options)
    closed = st.container(key=f"{key}_closed")
    with popover if popover.open else closed:
        yield popover


def row(key: str, width: str = "stretch") -> DeltaGenerator:
    """A line of elements, all of which stay in it."""
    return st.container(
        horizontal=True, wrap=False, vertical_alignment="center", key=key, gap="small", width=width
    )


def concerns(key: str) -> bool:
    return SETTINGS[key].concerns(session.context())
