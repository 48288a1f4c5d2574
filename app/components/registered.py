"""The components that are one script, index.js, and one style, style.css, in a folder of theirs."""

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from headlight.app.components.scripts import read, script


def registered(folder: str, *looks: str):
    """The function that mounts the component of a folder. `looks`: styles that it shares with
    others, such as button, of shared/button.css."""
    css = "".join([read(f"shared/{look}.css") for look in looks] + [read(f"{folder}/style.css")])
    return component(f"headlight_{folder}", css=css, js=script(f"{folder}/index.js"))


class Picture:
    """The picture of a folder. It is drawn from data; each of `hears` gets what the script tells
    under its name. `looks`: as of `registered`."""

    def __init__(self, folder: str, *looks: str):
        self.mount = registered(folder, *looks)

    def __call__(self, data: dict[str, Any], key: str, **hears: Callable[[Any], object]) -> None:
        def on_change(name: str) -> Callable[[], object]:
            return lambda: hears[name](st.session_state[key][name])

        heard: dict[str, Any] = {f"on_{name}_change": on_change(name) for name in hears}
        self.mount(data=data, key=key, **heard)
