"""A text that the browser keeps, and the server does not."""

from collections.abc import Callable

import streamlit as st
from streamlit.components.v2 import component

from headlight.app.components.scripts import script

_mount = component("headlight_local_storage", html="<i></i>", js=script("local_storage/index.js"))


def local_storage(session: str, text: str | None, on_stored: Callable[[str], None]) -> None:
    """Keep `text`. While it is None, `on_stored` hears once per `session` what is kept, if
    anything is."""

    def stored() -> None:
        on_stored(st.session_state["local_storage"].stored)

    _mount(
        data={"session": session, "text": text},
        key="local_storage",
        height=1,
        on_stored_change=stored,
    )
