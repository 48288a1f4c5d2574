"""All heads at once, with the text that they read. Mounts share one picture: one receives the
weights as bytes, others the display options (focus, order, scale), which are small, and what the
acts on its cards would give."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

import streamlit as st
from streamlit.components.v2 import component

from headlight.app.components.packing import GridOptions
from headlight.app.components.scripts import read, script

# Seconds. The server sends from another thread every 10 ms; the browser should be drawing the grid
# before it receives elements that take longer to draw.
HEAD_START = 0.02

_mount = component(
    "headlight_head_grid",
    css=read("head_grid/style.css"),
    js=script("head_grid/index.js"),
)
_mount_look = component("headlight_head_grid_look", js=script("head_grid/look.js"))
_mount_previews = component("headlight_head_grid_previews", js=script("head_grid/previews.js"))


def head_grid(
    packed: bytes,
    look: GridOptions,
    on_focus: Callable[..., None],
    on_cell: Callable[..., None],
    on_act: Callable[[Mapping, Mapping], None],
    fresh: bool,
) -> None:
    """Draw the grid. Callbacks: `on_focus` gets the selected head, as in `GridOptions.focus`, and
    the number of selections so far; `on_cell` the selected cell, as in `GridOptions.cell`; `on_act`
    an edit of a head, token or cell, as edits.edit takes it, and before it what `on_focus` gets.
    `fresh`: the browser does not have these weights yet."""

    def focus():
        on_focus(**st.session_state["head_grid"].focus)

    def cell():
        on_cell(**st.session_state["head_grid"].cell)

    def act():
        event = st.session_state["head_grid"].act
        on_act(event["focus"], event["what"])

    _mount(
        data=packed,
        key="head_grid",
        on_focus_change=focus,
        on_cell_change=cell,
        on_act_change=act,
    )
    # Sent apart: it changes with every click, and the weights are large.
    options = {
        name: value for name, value in asdict(look).items() if value != {} or name == "order"
    }
    _mount_look(data=options, key="head_grid_look", height=1)
    if fresh:
        time.sleep(HEAD_START)


def head_grid_previews(
    previews: Sequence[Mapping] | None, on_ask: Callable[[Sequence[dict]], None]
) -> None:
    """Bring what the acts would give that the grid has asked about, in their order; None where it
    has not. `on_ask` gets those acts, as edits.edit takes them."""

    def ask():
        on_ask(st.session_state["head_grid_previews"].asked)

    data = {} if previews is None else {"found": previews}
    _mount_previews(data=data, key="head_grid_previews", height=1, on_asked_change=ask)
