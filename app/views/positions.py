"""How the model knows word order: the positional table, the input of layer 1, and a lab."""

import numpy as np
import streamlit as st

from headlight.app import charts, selection
from headlight.app.components.figure import panel
from headlight.app.results import passes, position_results
from headlight.app.state import session, widgets
from headlight.app.views._positions_lab import LAB, OF_ALL_SIDES, Lab
from headlight.app.wording import model_texts, part_names

selection.tell_unchanged()
run = selection.run_unchanged()
view, projector = selection.view(run), session.values()["projector"]
trace = passes.trace_of(view, run)
sides = {side.title: side.name for side in trace.sides.values()}
controls = st.container(key="controls", horizontal=True, vertical_alignment="bottom", gap="large")
unlabelled = {"label_visibility": "collapsed", "width": "content"}
chosen = widgets.draw("lab", controls, unlabelled)
title = next(iter(sides))
if chosen not in OF_ALL_SIDES:
    title = widgets.draw("side", controls, unlabelled, options=list(sides), default=title)
side = sides[title]
encoding = trace.texts[side]
position = charts.Axis("position", [f"{i} {token}" for i, token in enumerate(encoding.tokens)])

if not trace.sides[side].table and chosen not in OF_ALL_SIDES:
    turned = position_results.rotation_of(view, run)
    panel(
        "How far each pair of numbers has turned",
        charts.vectors(np.cos(turned), position, 1.0),
        "This model adds no table. It turns each query and key, two numbers at a time, by an angle "
        "that grows with the position (rotary positions, Su et al. 2021): the cosine of that angle "
        "at each position, pairs from the quickest to the slowest. Two tokens are compared by the "
        "difference of their angles, which tells how far apart they stand.",
        key="rotation_figure",
        alt=f"Cosine of the angles at {turned.shape[0]} positions, {turned.shape[1]} pairs",
        projector=projector,
    )
elif chosen in LAB:
    LAB[chosen](Lab(view, run, trace, side, projector, controls))
else:
    table, token, embedded = trace.table[side], trace.token[side], trace.embedded[side]
    largest = float(max(np.abs(values).max() for values in (table, token, embedded)))
    panels = (
        (
            "table",
            "The positional table",
            "Captured from the model for these positions; it is the same for every sentence. "
            f"{model_texts.positions(view.model)}",
            table,
            None,
        ),
        (
            "token",
            part_names.token_title(view.model),
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
    )
    boxes = [*st.columns(2), *st.columns(2)]
    for box, (key, title, caption, values, scale) in zip(boxes, panels, strict=True):
        with box:
            panel(
                title,
                charts.vectors(values, position, scale),
                caption,
                key=f"{key}_figure",
                alt=f"{title}: {values.shape[0]} positions, {values.shape[1]} dimensions",
                projector=projector,
            )

st.markdown(
    "Attention by itself cannot tell “dog bites man” from “man bites dog”, so a **table** with "
    "one row a position is added to the words: in the paper, sines and cosines.  \n"
    "*Try: repeat a word. Its embedding rows are equal; which picture tells them apart?*"
)
