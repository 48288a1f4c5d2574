"""Two buttons, and the keys ← and →, to step back and forth."""

from collections.abc import Callable

import streamlit as st
from streamlit.components.v2 import component

from headlight.app.components.scripts import read, script

_mount = component(
    "headlight_walk",
    html="""
<button type="button">← Back</button>
<button type="button">Next →</button>
""",
    css=read("shared/button.css") + read("walk/style.css"),
    js=script("walk/index.js"),
)


def walk(at: int, count: int, on_step: Callable[[int], None]) -> None:
    """At step `at` of `count`, counted from 0; `on_step` is called with the new step."""

    def hear():
        on_step(st.session_state["walk"].at)

    _mount(data={"at": at, "count": count}, key="walk", on_at_change=hear)
