"""A row of weights, or a mask, to paint; and beside what was painted the truth."""

from collections.abc import Callable, Sequence

import streamlit as st
from streamlit.components.v2 import component

from headlight.app.components.scripts import read, script
from headlight.app.theme import FOCUS

_mount = component(
    "headlight_paint",
    css=read("shared/button.css") + read("paint/style.css"),
    js=script("paint/index.js"),
)


def paint(
    key: str,
    labels: Sequence[str],
    is_mask: bool,
    painted: Sequence | None = None,
    truth: Sequence | None = None,
    on_painted: Callable[[Sequence], None] | None = None,
) -> None:
    """Without a truth: squares to paint, shares of `labels` or, of a mask, True where a row may
    attend; `on_painted` gets them. With the `truth`: both, side by side."""

    def hear() -> None:
        if on_painted:
            on_painted(st.session_state[key].painted)

    _mount(
        data={
            "labels": list(labels),
            "mask": is_mask,
            "painted": painted,
            "truth": truth,
            "colour": FOCUS,
        },
        key=key,
        on_painted_change=hear if on_painted else lambda: None,
    )
