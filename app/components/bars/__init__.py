"""Positive and negative numbers as horizontal bars."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.components.v2 import component

from headlight.app.components.colour_key import NEGATIVE, POSITIVE
from headlight.app.components.scripts import read, script
from headlight.app.theme import FOCUS

_mount = component(
    "headlight_bars",
    css=read("bars/style.css"),
    js=script("bars/index.js"),
)


@dataclass(frozen=True)
class Bar:
    """A number and its name. `chooses`: whether a click on it chooses something; `chosen`: whether
    it is what was chosen, which has a frame."""

    name: str
    value: float
    chooses: bool = False
    chosen: bool = False


def bars(shown: Sequence[Bar], alt: str, key: str, on_choose: Callable[[int], None]) -> None:
    """From top to bottom, on one scale. `alt` says what they show; `on_choose` is called with the
    place of the bar that was clicked."""

    def hear():
        on_choose(st.session_state[key].chosen)

    colours = {"colours": [NEGATIVE, POSITIVE], "focus": FOCUS}
    data = {"bars": [vars(bar) for bar in shown], "alt": alt} | colours
    _mount(data=data, key=key, on_chosen_change=hear)
