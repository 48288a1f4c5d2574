"""What the regions of the screen share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from headlight.app.state import session, widgets
from headlight.app.state.pages import HOME, Page
from headlight.app.state.settings import SETTINGS

if TYPE_CHECKING:
    from streamlit.elements.lib.mutable_popover_container import PopoverContainer


def draw_settings(keys: Sequence[str], **options) -> None:
    """Those that apply. `options`: of the widgets."""
    for key in filter(concerns, keys):
        widgets.draw(key, widget_options=options)


def is_chosen(key: str) -> bool:
    """Whether a setting of the bar has another value than its default."""
    return session.values()[key] != SETTINGS[key].limits(session.context()).default


@contextmanager
def menu(label: str, key: str, **options) -> Iterator["PopoverContainer"]:
    """A popover for settings. `options`: further arguments of it."""
    widgets.stay_open(key, label)
    popover = st.popover(label, key=key, on_change="rerun", **options)
    with popover, widgets.in_menu(bool(popover.open)):
        yield popover


def row(key: str, width: Literal["content", "stretch"] = "stretch") -> DeltaGenerator:
    """A line of elements, all of which stay in it."""
    return st.container(
        horizontal=True, wrap=False, vertical_alignment="center", key=key, gap="small", width=width
    )


def st_page(page: Page) -> st.Page:
    """A page as Streamlit knows it: for the menu, and for links to it."""
    return st.Page(page.draw, title=page.title, url_path=page.path, default=page.key == HOME)


def concerns(key: str) -> bool:
    return SETTINGS[key].concerns(session.context())


def draw_head_picker() -> None:
    """Kind of attention, layer and head in one menu, named by the selected head."""
    chosen = session.values()
    name = session.context().known.kinds[chosen["kind"]][0].title.capitalize()
    label = f"{name} · layer {chosen['layer']} · head {chosen['head']}"
    with menu(label, "head_picker") as picker, st.container(horizontal=True):
        if picker.open:
            draw_settings(("kind", "layer", "head"))
