"""The way from the paper to Llama as a line of stops, one for each swapped part."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import streamlit as st
from streamlit.components.v2 import component

from headlight.app.components.scripts import read, script

KEY = "swap_line"

_mount = component(
    "headlight_swap_line",
    css=read("shared/button.css") + read("swap_line/style.css"),
    js=script("swap_line/index.js"),
)


@dataclass(frozen=True)
class Stop:
    """A model on the line. `name`: of its swap; `year`; `title`: what is new; `parameters` and
    `moved`: what the swap changes, in words; `share`: of the attention weight that moved, of the
    largest on the line, for its bar."""

    name: str
    year: str
    title: str
    parameters: str
    moved: str
    share: float


def swap_line(
    stops: Sequence[Stop], chosen: str, notes: Mapping[str, str], on_choose: Callable[[str], None]
) -> None:
    """Draw the line. `notes`: words on the page → what they mean. `on_choose` gets the name of the
    stop that is clicked."""

    def hear():
        name = st.session_state[KEY].chosen
        if name in {stop.name for stop in stops}:
            on_choose(name)

    data = {"stops": [asdict(stop) for stop in stops], "chosen": chosen, "notes": [*notes.items()]}
    _mount(data=data, key=KEY, on_chosen_change=hear)
