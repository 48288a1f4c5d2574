"""The words of two texts, one above the other, with lines between aligned words."""

from collections.abc import Callable, Iterable, Sequence

import streamlit as st
from streamlit.components.v2 import component

from headlight.app.components.scripts import read, script
from headlight.app.theme import FOCUS, Palette
from headlight.model.analysis.alignment import Links, WordWeights

TARGET = 1  # of the two sides

_mount = component(
    "headlight_word_lines",
    css=read("word_lines/style.css"),
    js=script("word_lines/index.js"),
)


def word_lines(
    weights: WordWeights,
    titles: tuple[str, str],
    links: Iterable[Links],
    note: str,
    palette: Palette,
    tall: bool = False,
    moments: Sequence[str] = (),
    chosen: int | None = None,
    on_pin: Callable[[int | None], None] | None = None,
) -> None:
    """`weights`, from 0 to 1, set the thickness of lines and shade the words aligned with the one
    under the pointer. `titles`: of source and target; `links`: the lines, and the earlier ones,
    dashed where they differ; `note`: shown while no word is pointed at; `tall`: nothing stands
    below; `moments`: names of the target words in sentences; `chosen`: the target word that is
    selected at first. `on_pin` gets the target word that is selected by a click, or None."""

    def pinned() -> None:
        side, word = st.session_state["word_lines"].pinned["word"] or (None, None)
        if on_pin:
            on_pin(word if side == TARGET else None)

    now, before = links
    _mount(
        data={
            "colour": FOCUS,
            "palette": palette,
            "titles": list(titles),
            "words": [list(weights.source), list(weights.target)],
            "weights": weights.weights.round(3).tolist(),
            "links": sorted(now),
            "before": sorted(before - now),
            "note": note,
            "tall": tall,
            "tells": on_pin is not None,
            "moments": list(moments),
            "chosen": None if chosen is None else [TARGET, chosen],
        },
        key="word_lines",
        on_pinned_change=pinned,
    )
