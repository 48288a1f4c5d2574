"""The panel beside the picture: what changes the model while it runs."""

import streamlit as st

from headlight.app.shell import edits, running_lesson
from headlight.app.shell.effect import peek
from headlight.app.shell.layout import concerns, shows_head
from headlight.app.state import session, widgets
from headlight.app.state.pages import Page
from headlight.app.state.settings import MASKS


def draw_change(page: Page) -> None:
    """Every mask of the model, padding, and the selected head."""
    with st.container(key="switches", gap="xsmall"):
        st.markdown("**Change**")
        for key in filter(concerns, MASKS):
            widgets.draw(key)
        if shows_head(page):
            _draw_peek()
        widgets.draw("pad_to")
        if shows_head(page):
            draw_switch()


def _draw_peek() -> None:
    """Under the causal mask, while it is off: a button that selects the head that peeks most."""
    if running_lesson.veils() or (seen := peek()) is None:
        return
    head = {"kind": seen.kind, "layer": seen.layer, "head": seen.head}
    st.button(
        f"Select head {seen.layer}.{seen.head}, which peeks most",
        icon=":material/visibility:",
        on_click=session.choose,
        kwargs=head,
        disabled=head == {key: session.values()[key] for key in head},
        help="The decoder self-attention head with the largest weight on a token it should predict",
        key="select_peek",
        type="tertiary",
    )


def draw_switch(**options) -> None:
    """The button that switches the selected head off, or on again; `options` of the button."""
    focus, layer = session.focus(), session.values()["layer"]
    name = f"head {layer}.{focus.head + 1}"
    st.button(
        f"Switch {name} on again" if edits.is_off(**vars(focus)) else f"Switch off {name}",
        icon=":material/power_settings_new:",
        on_click=edits.edit,
        kwargs={"what": "off"} | vars(focus),
        help="On the small maps: O",
        key="switch_head",
        **{"type": "tertiary"} | options,
    )
