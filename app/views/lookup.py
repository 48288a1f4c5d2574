"""Attention as a look-up: by hand with vectors in the plane, then in the head in focus."""

import numpy as np
import streamlit as st

from app import state, words
from app.charts import Axis
from app.components import plane
from model.plane import answer, principal_plane

st.markdown(
    "A look-up compares a **query** with every **key** and mixes their **values**, most of what "
    "fits best. Here with three words to drag, below in the head in focus.  \n"
    "*Try: pull “rollercoaster” towards zero. Why does the answer become the plain mean?*"
)

st.subheader("A dictionary that answers by similarity")
st.markdown(
    "A Python dictionary finds “fun”, “exciting” and “boring”, and for “rollercoaster” raises a "
    "KeyError. With vectors there is always an answer: dot products say how alike two words are, "
    "softmax makes weights of them that add up to 1."
)
with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
    scaled = st.toggle(
        "Divide scores by √2",
        value=True,
        key="scaled",
        bind="query-params",
        help="√ of how many numbers a vector has. Off: the same order, but sharper.",
        width="content",
    )
    divided = r"q \cdot k_i / \sqrt 2" if scaled else r"q \cdot k_i"
    st.markdown(
        rf"$w_i = \text{{softmax}}_i ({divided})$ $\quad \text{{answer}} = \sum_i w_i \, v_i$",
        width="content",
    )
plane.look_up(scaled)

trace, focus = state.current_trace(), state.focus()
kind, layer, head = focus.kind, focus.layer, focus.head
query, key = (vectors[kind][layer, head] for vectors in (trace.query, trace.key))
pieces = words.sides(trace, kind)
asks, looked_at = words.SIDES[kind]

st.subheader(words.head_name(kind, layer, head))
if st.session_state.get("asks", 1) > len(query):  # the sentence became shorter
    st.session_state["asks"] = len(query)
chosen = (
    st.number_input(
        "Which piece asks",
        1,
        len(query),
        value=min(2, len(query)),
        key="asks",
        bind="query-params",
        width=200,
        help="Its place in the sentence, counted from 1. Or click a piece below, or walk there "
        "with the arrow keys.",
    )
    - 1
)

seen = principal_plane(np.concatenate([query, key]))
found = answer(
    seen,
    query[chosen],
    key,
    trace.scores(kind, layer, head)[chosen],
    trace.attention[kind][layer, head, chosen],
)
st.markdown(words.in_plane(seen, found, (asks, looked_at), query.shape[-1]))
plane.head(
    seen,
    (query, key),
    tuple(Axis(side, own.pieces) for side, own in zip((asks, looked_at), pieces, strict=True)),
    chosen,
    found,
    on_choose=lambda index: st.session_state.update(asks=index + 1),
)
