"""Where word order comes from: the positional table, what enters layer 1, and a lab."""

import numpy as np
import streamlit as st

from app import charts, state, words
from app.components.figure import figure
from app.components.pieces import pieces
from app.components.positions_lab import LAB

st.markdown(
    "Attention by itself cannot tell “dog bites man” from “man bites dog”, so a **table** with "
    "one row a position is added to the words: in the paper, sines and cosines.  \n"
    "*Try: repeat a word. Its embedding rows are equal; which picture tells them apart?*"
)

trace = state.current_trace()
sides = {"source": ("src", trace.src), "target": ("tgt", trace.tgt)}
side = st.segmented_control(
    "Side",
    [name for name, (short, _) in sides.items() if short in trace.table],
    default="source",
    required=True,
    key="side",
    bind="query-params",
    help="The encoder reads the source, the decoder the target.",
)
short, encoding = sides[side]
pieces(side.capitalize(), encoding)
position = charts.Axis("position", [f"{i} {piece}" for i, piece in enumerate(encoding.pieces)])

chosen = st.segmented_control(
    "Lab",
    ["What is added", *LAB],
    default="What is added",
    required=True,
    key="lab",
    bind="query-params",
    wrap=True,
    help="The table and what it is added to; what is in the table; what the model does without it.",
)
if chosen in LAB:
    LAB[chosen](short)
else:
    said = words.positions(state.checkpoint().model)
    table, token, embedded = trace.table[short], trace.token[short], trace.embedded[short]
    largest = float(max(np.abs(values).max() for values in (table, token, embedded)))
    for key, title, caption, values, scale in (
        (
            "table",
            "The positional table",
            "Captured from the model for these positions; it is the same for every sentence. "
            f"{said}",
            table,
            None,
        ),
        (
            "token",
            words.token_title(state.checkpoint().model),
            "What the words bring along: the same row wherever the piece stands.",
            token,
            largest,
        ),
        (
            "added",
            "The table again, on the scale of the sum",
            "How much of what enters is position.",
            table,
            largest,
        ),
        (
            "embedded",
            "Their sum, as it enters layer 1",
            "Embedding plus table, added number by number.",
            embedded,
            largest,
        ),
    ):
        st.subheader(title)
        st.caption(caption)
        figure(
            charts.vectors(values, position, scale),
            key=f"{key}_figure",
            alt=f"{title}: {values.shape[0]} positions, {values.shape[1]} dimensions",
        )
