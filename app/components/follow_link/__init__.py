"""Follows a link of the page: Streamlit's own way to another page drops what the address holds."""

from streamlit.components.v2 import component

from headlight.app.components.scripts import script

_mount = component("headlight_follow_link", html="<i></i>", js=script("follow_link/index.js"))


def follow_link(key: str, count: int) -> None:
    """Follow the st.page_link in the container `key`, once for each `count`."""
    _mount(data={"key": key, "count": count}, key="follow_link", height=1)
