"""Queries, keys and values: first with draggable vectors in the plane, then in the selected
head."""

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from headlight.app import selection
from headlight.app.components import plane
from headlight.app.components.colour_key import PRIMARY_COLOUR, Swatch, colour_key
from headlight.app.results import head_results
from headlight.app.shell import frame, running_lesson
from headlight.app.state import messages, session, widgets
from headlight.app.state.options import CLEAREST_ROW, WORDS
from headlight.app.text import exercises, part_names
from headlight.app.text.axis import Axis
from headlight.app.theme import FOCUS
from headlight.model.analysis.projection import Answer, Plane, answer, principal_plane
from headlight.model.rounding import percent

# Van Dijck's soft dictionary: what is a “rollercoaster” worth?
VALUES = {"fun": 10.0, "exciting": 9.0, "boring": -3.0}
KEYS = {"fun": (5.0, -3.0), "exciting": (6.0, -1.0), "boring": (-4.0, 8.0)}
QUERY = (8.0, -5.0)
BARE = {"label_visibility": "collapsed", "width": 170}


def words() -> None:
    frame.explain(
        "A Python dictionary finds “fun”, “exciting” and “boring”, but raises a KeyError for "
        "“rollercoaster”. With vectors there is always an answer. Dot products measure "
        "similarity, and softmax turns them into weights that add up to 1.",
        exercises.ROLLERCOASTER,
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        scaled = widgets.draw("scaled")
        divided = r"q \cdot k_i / \sqrt 2" if scaled else r"q \cdot k_i"
        st.markdown(
            rf"$w_i = \text{{softmax}}_i ({divided})$ $\quad \text{{answer}} = \sum_i w_i \, v_i$",
            width="content",
        )
    colour_key(
        Swatch("query", FOCUS), Swatch("keys: the thicker, the larger the weight", PRIMARY_COLOUR)
    )
    plane.look_up(
        scaled,
        {"rollercoaster": QUERY} | KEYS,
        list(VALUES.values()),
        running_lesson.hear_query if running_lesson.awaits_act() else None,
    )


def selected_head(controls: DeltaGenerator) -> None:
    selection.tell_unchanged()
    shown, place = selection.unchanged(), session.focus()
    trace, (kind, layer, head) = shown.trace, place
    steps = head_results.head_steps_of(shown, trace.kinds[kind][layer], head)
    query, key = steps.compared
    texts, (asks, answers) = trace.texts_of(kind), trace.sides_of(kind)
    titles = asks.title, answers.title
    rows = trace.row_words(*place)
    with controls:
        chosen = widgets.draw_token("follow", texts[0].tokens, CLEAREST_ROW, BARE, names=rows)
    if chosen is None:
        chosen = head_results.opening_row(shown, place)
    if not (np.isfinite(query).all() and np.isfinite(key).all()):
        st.info("Queries and keys that are NaN or infinite cannot be drawn in a plane.")
        raise messages.NothingToShow
    pca_plane = principal_plane(np.concatenate([query, key]))
    result = answer(
        pca_plane,
        query[chosen],
        key,
        steps.scaled[chosen],
        steps.weights[chosen],
    )
    frame.explanation().markdown(f"**{part_names.head_name(trace, place)}**")
    frame.explain(in_plane(pca_plane, result, titles, query.shape[-1]))
    plane.head(
        pca_plane,
        (query, key),
        (Axis(titles[0], rows), Axis(titles[1], texts[1].tokens)),
        chosen,
        result,
        on_choose=lambda index: session.choose(follow=f"{index + 1} "),
    )


def page() -> None:
    frame.finding(
        "Attention compares a **query** with every **key** and mixes their **values**; better "
        "matches count more."
    )
    controls = frame.controls()
    with controls:
        shown = widgets.draw("vectors", widget_options={"label_visibility": "collapsed"})
    if shown == WORDS:
        words()
    else:
        selected_head(controls)


def in_plane(plane: Plane, answer: Answer, sides: tuple[str, str], width: int) -> str:
    """How much of a head's queries and keys, of `width` numbers, the plane keeps, and how far that
    misleads for one query."""
    query_title, key_title = sides
    whose = (
        f"Queries and keys both come from the {query_title}"
        if query_title == key_title
        else f"Queries come from the **{query_title}**, keys from the **{key_title}**"
    )
    text = (
        f"{whose}, {width} numbers each. The plane is a joint PCA of both and keeps "
        f"**{percent(plane.explained.sum())}** of their variance. The weights shown are the "
        "head's true weights. "
    )
    off = answer.off()
    if not off.size:
        return f"{text}With these masks, this query cannot attend at all: all its weights are zero."
    return (
        f"{text}Dot products in the plane are approximate: for this query, q·k ÷ √{width} is "
        f"off by {off.mean():.2f} on average, {off.max():.2f} at most. Weights computed from "
        f"the plane would move **{percent(answer.total_variation())}** of the row: trust the "
        "table."
    )
