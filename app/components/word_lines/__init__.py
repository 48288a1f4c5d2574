"""The words of two texts, one above the other, with lines between aligned words."""

from collections.abc import Iterable

import streamlit as st

from headlight.app.components.scripts import read, script
from headlight.app.theme import FOCUS
from headlight.model.analysis.alignment import Links, WordWeights

_mount = st.components.v2.component(
    "headlight_word_lines",
    css=read("word_lines/style.css"),
    js=script("word_lines/index.js"),
)


def word_lines(
    weights: WordWeights,
    titles: tuple[str, str],
    links: Iterable[Links],
    note: str,
    tall: bool = False,
) -> None:
    """`weights`, from 0 to 1, set the thickness of lines and shade the words aligned with the one
    under the pointer. `titles`: of source and target; `links`: the lines, and the earlier ones,
    dashed where they differ; `note`: shown while no word is pointed at; `tall`: nothing stands
    below."""
    now, before = links
    _mount(
        data={
            "colour": FOCUS,
            "titles": list(titles),
            "words": [list(weights.source), list(weights.target)],
            "weights": weights.weights.round(3).tolist(),
            "links": sorted(now),
            "before": sorted(before - now),
            "note": note,
            "tall": tall,
        },
        key="word_lines",
    )
