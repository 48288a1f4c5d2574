"""A page of HTML in a frame of its own: its scripts run, and reach nothing outside the frame.

st.iframe would give them the rights of this page, and its frame grows but never shrinks.
"""

import streamlit as st

from app.components.scripts import script

_mount = st.components.v2.component(
    "headlight_html_frame",
    html='<iframe sandbox="allow-scripts"></iframe>',
    css="iframe { display: block; width: 100%; height: 30rem; border: none; }",
    js=script("html_frame/index.js"),
)


def html_frame(page: str, key: str, alt: str) -> None:
    """`page` says how high it is by posting {height: pixels} to its parent."""
    _mount(data={"page": page, "alt": alt}, key=key)
