"""The selected head as lines from its queries to the keys that they attend to."""

import numpy as np
import streamlit as st

from headlight.app import selection
from headlight.app.components.colour_key import LINE, POINTED, colour_key
from headlight.app.components.word_lines import word_lines
from headlight.app.results import passes
from headlight.app.shell import frame
from headlight.app.state import messages, session
from headlight.app.state.pages import ATTENTION, Page
from headlight.app.wording import part_names
from headlight.model.analysis.alignment import Links, WordWeights
from headlight.model.analysis.reading import LabelledWeights
from headlight.model.probing.run import Run

PAGE = Page("Lines", ATTENTION, "Lines", place=2, head=True, reading=True)

LEAST = 0.05  # smaller weights get no line
MOST = 256  # tokens of a text: more lines cannot be told apart
TITLES = "Keys", "Queries"
NOTE = f"A line for every weight of at least {100 * LEAST:.0f}%. Point at a word for its weights."
EXPLAINED = (
    "A line joins a query below to a key above that it attends to. The thicker the line, the "
    "larger the weight. Weights too small for a line are left out."
)


def picture_of(of_run: Run) -> LabelledWeights:
    """The selected head, or the mean that is chosen under Display."""
    return passes.picture_of(
        selection.view(of_run), of_run, focus.kind, focus.layer, focus.head, session.reading()
    )


def links(weights) -> Links:
    return frozenset((int(key), int(query)) for query, key in np.argwhere(weights >= LEAST))


def links_before() -> Links:
    """The lines of the run that is compared with; none if its tokens differ."""
    before = selection.other_run() or selection.run(changed=False)
    if before == run:
        return frozenset()
    other = picture_of(before)
    same = (other.query, other.key) == (picture.query, picture.key)
    return links(other.weights) if same else frozenset()


run, focus = selection.run(), session.focus()
picture = picture_of(run)
if max(picture.weights.shape) > MOST:
    frame.notices().info(
        f"Lines are drawn for up to {MOST} tokens, and this text has "
        f"{max(picture.weights.shape):,}. Use Matrix instead."
    )
    raise messages.NothingToShow
trace = passes.trace_of(selection.view(run), run)
before, now = links_before(), links(picture.weights)
query, key = part_names.axes(trace, focus.kind, focus.layer, focus.head, session.reading())
words = WordWeights(tuple(key.labels), tuple(query.labels), picture.weights)
dashed = " Dashed: lines that were there before the change." if before - now else ""
colour_key(LINE, POINTED)
word_lines(words, TITLES, (now, before), NOTE + dashed, tall=True)
frame.explain(f"{EXPLAINED} Above: {key.title}. Below: {query.title}.")
if picture.notes:
    frame.notices().caption(" ".join(picture.notes))
if not now:
    st.info("No weight of this head reaches 5%.")
