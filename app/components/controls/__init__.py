"""Small controls and displays that Streamlit lacks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from headlight.app.components.scripts import read, script

_mount_walk = component(
    "headlight_walk",
    html='<button type="button" aria-label="Back">←</button>'
    '<button type="button" aria-label="Next">→</button>',
    css=read("shared/button.css")
    + ":host { display: block; white-space: nowrap; }"
    + "button { padding: 0.2rem 0.6rem; border: none; background: none; }",
    js=script("controls/walk.js"),
)
_mount_player = component(
    "headlight_player",
    html='<button type="button"></button>',
    css=read("shared/button.css")
    + "button { height: 1.5rem; padding: 0 0.6rem; font-size: 0.8rem; vertical-align: top; }",
    js=script("controls/player.js"),
)
# st.iframe would give the page's scripts our rights, and its frame grows but never shrinks.
_mount_frame = component(
    "headlight_html_frame",
    html='<iframe sandbox="allow-scripts"></iframe>',
    css="iframe { display: block; width: 100%; height: 30rem; border: none; }",
    js=script("controls/html_frame.js"),
)


def walk(at: int, count: int, said: Mapping[str, Any], on_step: Callable[[int], None]) -> None:
    """Two buttons, and the keys ← and →, to step back and forth. At step `at` of `count`, counted
    from 0; `on_step` is called with the new step. `said`: what the header says of it, as the stage
    is told it by a whole run."""

    def hear():
        on_step(st.session_state["walk"].at)

    _mount_walk(
        data={"at": at, "count": count, "said": said},
        key="walk",
        on_at_change=hear,
        width="content",
    )


def player(steps: Sequence[str], step: str, on_step: Callable[[str], None]) -> None:
    """A button that plays through the training steps. `on_step` is called with the next of the
    steps, and after the last with the first."""

    def hear():
        on_step(st.session_state["player"].step)

    data = {"steps": list(steps), "step": step}
    _mount_player(data=data, key="player", on_step_change=hear, width="content")


def html_frame(page: str, key: str, alt: str) -> None:
    """An HTML page in a sandboxed frame: its scripts run but reach nothing outside. `page` reports
    its height by posting {height: pixels} to its parent."""
    _mount_frame(data={"page": page, "alt": alt}, key=key)
