"""Queries, keys and values: three words as vectors to drag."""

import streamlit as st

from headlight.app.components import plane
from headlight.app.components.colour_key import PRIMARY_COLOUR, Swatch, colour_key
from headlight.app.shell import frame, running_lesson
from headlight.app.state import widgets
from headlight.app.text import exercises
from headlight.app.theme import FOCUS

# Van Dijck's soft dictionary: what is a “rollercoaster” worth?
VALUES = {"fun": 10.0, "exciting": 9.0, "boring": -3.0}
KEYS = {"fun": (5.0, -3.0), "exciting": (6.0, -1.0), "boring": (-4.0, 8.0)}
QUERY = (8.0, -5.0)


def page() -> None:
    frame.finding(
        "Attention compares a **query** with every **key** and mixes their **values**; better "
        "matches count more."
    )
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
