"""Where word order comes from: the positional table, what enters layer 1, and a lab."""

import numpy as np
import streamlit as st

from app import charts, compute, labels, session
from app.components.figure import figure
from app.components.token_line import token_line
from app.views._positions_lab import LAB, Lab

st.markdown(
    "Attention by itself cannot tell “dog bites man” from “man bites dog”, so a **table** with "
    "one row a position is added to the words: in the paper, sines and cosines.  \n"
    "*Try: repeat a word. Its embedding rows are equal; which picture tells them apart?*"
)

run = session.run_unchanged()
view, projector = session.view(run), session.values()["projector"]
trace = compute.trace_of(view, run)
sides = {side.title: side.name for side in trace.sides.values()}
with st.container(key="controls", horizontal=True, gap="large"):
    title = session.draw("side", options=list(sides), default=next(iter(sides)))
    chosen = session.draw("lab")
side = sides[title]
encoding = trace.texts[side]
token_line(title.capitalize(), encoding)
position = charts.Axis("position", [f"{i} {token}" for i, token in enumerate(encoding.tokens)])

if chosen in LAB:
    LAB[chosen](Lab(view, run, trace, side, projector))
else:
    description = labels.positions(view.model)
    table, token, embedded = trace.table[side], trace.token[side], trace.embedded[side]
    largest = float(max(np.abs(values).max() for values in (table, token, embedded)))
    for key, title, caption, values, scale in (
        (
            "table",
            "The positional table",
            "Captured from the model for these positions; it is the same for every sentence. "
            f"{description}",
            table,
            None,
        ),
        (
            "token",
            labels.token_title(view.model),
            "What the words bring along: the same row wherever the token stands.",
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
            projector=projector,
        )
