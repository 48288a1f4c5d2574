"""All heads at once, and the text that they read: the browser's part is head_grid.js."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import streamlit as st

from app.components.packing import Look

HERE = Path(__file__).resolve().parent
# Seconds. The server sends from another thread, every 10 ms: the browser should be drawing the
# grid by the time it hears of what takes longer to draw.
HEAD_START = 0.02

_mount = st.components.v2.component(
    "headlight_head_grid",
    css=(HERE / "head_grid.css").read_text(encoding="utf-8"),
    js=(HERE / "head_grid.js").read_text(encoding="utf-8"),
)
# A mount sends its script along with its data, so the small one has a small script.
_mount_look = st.components.v2.component(
    "headlight_head_grid_look",
    js="""
export default function ({ data }) {
  const shared = (window.headlight ??= {});
  shared.look = data;
  shared.grid?.setLook(data);
}
""",
)


def head_grid(packed: bytes, look: Look, on_focus: Callable[[Mapping], None], fresh: bool) -> None:
    """The grid. `on_focus` hears of a head that was chosen, as `Look.focus`; `fresh`: whether the
    browser does not have these weights yet."""

    def chosen():
        on_focus(st.session_state["head_grid"].focus)

    _mount(data=packed, key="head_grid", on_focus_change=chosen)
    # Apart, because it changes with every click, and the weights are large.
    _mount_look(data=asdict(look), key="head_grid_look", height=1)
    if fresh:
        time.sleep(HEAD_START)
