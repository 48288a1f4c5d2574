"""Home: where every head looks, one head in full, and what the model would say next."""

import numpy as np
import pandas as pd
import streamlit as st

from app import charts, state, words
from app.components.figure import figure
from app.components.pieces import pieces

MOST_PROBABLE = 5

st.markdown(
    "Each picture is one head: a **row** is a piece that asks, a **column** a piece that is "
    "looked at, and each row adds up to 1.  \n"
    "*Try: in cross-attention, which head finds the German word for each English one?*"
)

trace = state.current_trace()
focus = state.focus()
chosen = state.settings()

pieces("Source", trace.src)
pieces("Target", trace.tgt)
for side, text, encoding in (
    ("source", chosen.text, trace.src),
    ("target", chosen.target.strip(), trace.tgt),
):
    if text:
        for sentence in words.notices(side, text, encoding):
            st.info(sentence)

attention = trace.attention[focus.kind]
weights = attention[focus.layer, focus.head]
query, key = words.axes(trace, focus.kind)

left, right = st.columns([2, 3], gap="medium")
with left:
    st.subheader("All heads")
    figure(
        charts.overview(attention, (focus.layer, focus.head)),
        key="overview_figure",
        alt=f"{words.KINDS[focus.kind]}: {attention.shape[0]} layers of {attention.shape[1]} heads",
    )
with right:
    name = words.head_name(focus.kind, focus.layer, focus.head)
    st.subheader(name)
    if said := words.empty_rows(weights, query):
        st.warning(said)
    figure(charts.attention(weights, query, key), key="head_figure", alt=name)

st.subheader("What comes next")
st.caption(
    f"For each target piece read so far, the {MOST_PROBABLE} most probable next pieces "
    "and their probabilities."
)
logits = trace.logits - trace.logits.max(axis=1, keepdims=True)
probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
best = np.argpartition(-probabilities, MOST_PROBABLE, axis=1)[:, :MOST_PROBABLE]
order = np.argsort(-np.take_along_axis(probabilities, best, axis=1), axis=1)
best = np.take_along_axis(best, order, axis=1)
tokenizer = state.checkpoint().tokenizer
table = {"position": range(len(trace.tgt.pieces)), "after": trace.tgt.pieces}
for rank in range(MOST_PROBABLE):
    table[f"{rank + 1}."] = [
        f"{tokenizer.piece(ids[rank])}  {row[ids[rank]]:.1%}"
        for ids, row in zip(best, probabilities, strict=True)
    ]
st.dataframe(
    pd.DataFrame(table),
    hide_index=True,
    height="content" if len(best) <= 40 else 1000,
    alt="The most probable next pieces after each target piece",
)
