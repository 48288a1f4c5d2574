"""What the browser does and Streamlit hears nothing of: Back leads to where a page was scrolled to,
other colours of the page ask for a run, because figures are drawn in ink that suits them, and a run
that takes long marks the page as slow."""

import streamlit as st

from app.components.scripts import script

_mount = st.components.v2.component(
    "headlight_browser_events",
    html="<i></i>",
    css="i { color: var(--st-text-color); }",
    js=script("browser_events/index.js"),
)


def browser_events() -> None:
    _mount(key="browser_events", height=1, on_recoloured_change=lambda: None)
