"""All heads at once, and the text that they read. Two mounts share one picture: one brings the
weights, as bytes; the other how to look at them (focus, order, scale), which is small."""

import time
from collections.abc import Callable
from dataclasses import asdict

import streamlit as st

from app.components.packing import Look
from app.components.scripts import read, script

# Seconds. The server sends from another thread, every 10 ms: the browser should be drawing the
# grid by the time it hears of what takes longer to draw.
HEAD_START = 0.02

_mount = st.components.v2.component(
    "headlight_head_grid",
    css=read("head_grid/style.css"),
    js=script("head_grid/index.js"),
)
_mount_look = st.components.v2.component("headlight_head_grid_look", js=script("head_grid/look.js"))


def head_grid(
    packed: bytes,
    look: Look,
    on_focus: Callable[..., None],
    on_query: Callable[[int], None],
    on_act: Callable[..., None],
    fresh: bool,
) -> None:
    """The grid. `on_focus` hears of a head that was selected, as `Look.focus`, with the count of
    such selections; `on_query` of a query that was, by its row; `on_act` of what is done to a
    head, a token or a cell, as acts.act takes it; `fresh`: whether the browser does not have
    these weights yet."""

    def focus():
        on_focus(**st.session_state["head_grid"].focus)

    def query():
        on_query(st.session_state["head_grid"].query)

    def act():
        told = st.session_state["head_grid"].act
        on_focus(**told["focus"])
        on_act(**told["what"])

    _mount(
        data=packed,
        key="head_grid",
        on_focus_change=focus,
        on_query_change=query,
        on_act_change=act,
    )
    # Apart, because it changes with every click, and the weights are large.
    told = {name: value for name, value in asdict(look).items() if value != {} or name == "order"}
    _mount_look(data=told, key="head_grid_look", height=1)
    if fresh:
        time.sleep(HEAD_START)
