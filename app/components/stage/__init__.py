"""The stage: one drawing with depths. It is mounted once, without data; what changes comes by small
mounts beside it, because Streamlit (1.67) sends a component's script again with every change of its
data."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from headlight.app.components.packing import Answer, pack_answers
from headlight.app.components.scripts import read, script

KEY = "stage"

_mount = component("headlight_stage", css=read("stage/style.css"), js=script("stage/index.js"))
_mount_run = component("headlight_stage_run", js=script("stage/run.js"))
_mount_look = component("headlight_stage_look", js=script("stage/look.js"))
_mount_said = component("headlight_stage_said", js=script("stage/said.js"))
_mount_more = component("headlight_stage_more", js=script("stage/more.js"))

Hear = Callable[[Any], object]


def stage(on_act: Hear, on_choose: Hear) -> None:
    """The stage itself: the same message in every run. `on_act` hears an edit as edits.edit takes
    it, or what undoes one; `on_choose` a sentence, a model, Present; either comes with the
    `selection`."""

    def act():
        on_act(st.session_state[KEY].act)

    def choose():
        on_choose(st.session_state[KEY].choose)

    _mount(key=KEY, on_act_change=act, on_choose_change=choose)


def stage_run(packed: bytes) -> None:
    """The weights of all heads as packing.pack has them; behind them those before a change."""
    _mount_run(data=packed, key="stage_run", height=1)


def stage_look(look: Mapping[str, Any]) -> None:
    """What may be seen, how it looks, what is selected: once in every run of the script."""
    _mount_look(data=dict(look), key="stage_look", height=1)


def stage_said(said: Mapping[str, Any]) -> None:
    """What the changes did to the output of a run, as effect.Effect has it, and the run's id."""
    _mount_said(data=dict(said), key="stage_said", height=1)


def stage_answers(session: str, answers: Sequence[Answer], on_ask: Hear) -> None:
    """Answer questions: each with what was asked, and its numbers, arrays (rows, columns) by name,
    or a value. Another `session` makes the browser ask again what waits."""

    def ask():
        on_ask(st.session_state["stage_more"].ask)

    data = pack_answers(answers, session=session)
    _mount_more(data=data, key="stage_more", height=1, on_ask_change=ask)
