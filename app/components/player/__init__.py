"""A button that plays through the training steps."""

from collections.abc import Callable, Sequence

import streamlit as st
from streamlit.components.v2 import component

from headlight.app.components.scripts import read, script

_mount = component(
    "headlight_player",
    html='<button type="button"></button>',
    css=read("shared/button.css") + read("player/style.css"),
    js=script("player/index.js"),
)


def player(steps: Sequence[str], step: str, on_step: Callable[[str], None]) -> None:
    """`on_step` is called with the next of the steps, and after the last with the first."""

    def hear():
        on_step(st.session_state["player"].step)

    _mount(
        data={"steps": list(steps), "step": step},
        key="player",
        on_step_change=hear,
        width="content",
    )
