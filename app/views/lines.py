"""The selected head as lines from its queries to the keys that they attend to."""

from dataclasses import replace

import numpy as np
import streamlit as st

from headlight.app import selection
from headlight.app.components.colour_key import LINE_SWATCH, POINTED, colour_key, weight_scale
from headlight.app.components.word_lines import word_lines
from headlight.app.shell import frame
from headlight.app.state import messages, session
from headlight.app.text import part_names
from headlight.app.views._word_links import dashed, links_before
from headlight.model.analysis.alignment import Links, WordWeights
from headlight.model.analysis.reading import LabelledWeights
from headlight.model.probing.run import Run

LEAST = 0.05  # smaller weights get no line
MOST = 256  # tokens of a text: more lines cannot be told apart
TITLES = "Keys", "Queries"
NOTE = (
    f"A line for every weight of at least {100 * LEAST:.0f}%. Point at a word to see its weights; "
    "click to keep them in view."
)
EXPLAINED = (
    "A line joins a {query} to a {key} that it attends to. The thicker the line, the larger the "
    "weight. Weights too small for a line are left out."
)


def picture_of(of_run: Run) -> LabelledWeights:
    """The selected head, or the mean that is chosen under Display."""
    return selection.shown(of_run).picture(session.focus(), session.reading())


def words_of(of_head: LabelledWeights) -> WordWeights:
    """Its keys in the place of a source, its queries in that of a target."""
    return WordWeights(of_head.key, of_head.query, of_head.weights)


def links(words: WordWeights) -> Links:
    # As rounded on the screen: a weight shown as 5% has a line.
    strong = np.argwhere(words.weights.round(2) >= LEAST)
    return frozenset((int(key), int(query)) for query, key in strong)


def choose_query(row: int | None) -> None:
    """Choose the row that the other pages follow, or none. A callback."""
    session.choose_cell(-1 if row is None else row, -1)


def page() -> None:
    shown, focus = selection.shown(), session.focus()
    picture = shown.picture(focus, session.reading())
    if max(picture.weights.shape) > MOST:
        frame.notices().info(
            f"Lines are drawn for up to {MOST} tokens, and this text has "
            f"{max(picture.weights.shape):,}. Use Matrix instead."
        )
        raise messages.NothingToShow
    trace = shown.trace
    words = words_of(picture)
    now = links(words)
    before = links_before(shown.run, words, lambda other: words_of(picture_of(other)), links)
    query, key = part_names.axes(trace, focus, session.reading())
    words = replace(words, source=tuple(key.labels), target=tuple(query.labels))
    colour_key(LINE_SWATCH, POINTED, weight_scale(session.palette()))
    row = session.chosen_cell().get("query", -1)
    word_lines(
        words,
        TITLES,
        (now, before),
        NOTE + dashed(before - now),
        session.palette(),
        tall=True,
        moments=part_names.moments(trace, focus.kind, session.reading()),
        chosen=row if 0 <= row < len(words.target) else None,
        on_pin=choose_query,
    )
    frame.explain(EXPLAINED.format(query=query.title, key=key.title))
    if picture.notes:
        frame.notices().caption(" ".join(picture.notes))
    if not now:
        st.info("No weight of this head reaches 5%.")
