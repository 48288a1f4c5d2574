"""The panel beside the picture: what changes the model while it runs."""

import streamlit as st

from headlight.app.shell import edits
from headlight.app.shell.layout import concerns
from headlight.app.state import session, widgets
from headlight.app.state.settings import MASKS


def draw_change() -> None:
    """Every mask of the model, and padding."""
    st.markdown("**Change**")
    for key in filter(concerns, MASKS):
        widgets.draw(key)
    widgets.draw("pad_to")


def draw_switch(**options) -> None:
    """The button that switches the selected head off, or on again; `options` of the button."""
    focus, layer = session.focus(), session.values()["layer"]
    name = f"head {layer}.{focus.head + 1}"
    st.button(
        f"Switch {name} on again" if edits.is_off(**vars(focus)) else f"Switch off {name}",
        icon=":material/power_settings_new:",
        kwargs=vars(focus),
        help="On the small maps: O",
        key="switch_head",
        **{"type": "tertiary", "on_click": switch} | options,
    )


def switch(**head) -> None:
    """Switch a head off, or on again. A callback."""
    edits.edit("off", **head)
