"""The panel beside the picture: what changes the model while it runs."""

import streamlit as st

from headlight.app.shell import edits
from headlight.app.shell.layout import concerns
from headlight.app.state import session, widgets
from headlight.app.state.pages import Page
from headlight.app.state.settings import MASKS


def draw_change(page: Page) -> None:
    """Every mask of the model, padding, and the selected head."""
    with st.container(key="switches", gap="xsmall"):
        st.markdown("**Change**")
        for key in filter(concerns, MASKS):
            widgets.draw(key)
        widgets.draw("pad_to")
        if page.head:
            st.button(
                "Switch this head off or on",
                icon=":material/power_settings_new:",
                on_click=edits.edit,
                kwargs={"what": "off"} | vars(session.focus()),
                help="On the small maps: O",
                key="switch_head",
                type="tertiary",
            )
