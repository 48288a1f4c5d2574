"""Where a page is scrolled to: Back leads there again."""

import streamlit as st

from app.components.scripts import script

_mount = st.components.v2.component("headlight_keep_place", js=script("keep_place/index.js"))


def keep_place() -> None:
    _mount(key="keep_place", height=1)
