"""Home: where every head looks, one head in full, and what the model answers."""

import pandas as pd
import streamlit as st

from app import charts, state, words
from app.components.figure import figure
from app.components.pieces import pieces

MOST_PROBABLE = 5

st.markdown(
    "Each picture is one head: a **row** is a piece that asks, a **column** a piece that is "
    "looked at, and each row adds up to 1.  \n"
    "*Try: walk through the layers. Where does a head stop looking at neighbours?*"
)

trace = state.current_trace()
focus = state.focus()
chosen = state.settings()
model = state.checkpoint()

read = {"source": (chosen.text, trace.src)}
if not model.classes:
    read["target"] = (chosen.target.strip(), trace.tgt)
for side, (text, encoding) in read.items():
    pieces(side.capitalize(), encoding)
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

ids, probabilities = trace.most_probable(MOST_PROBABLE)
if model.classes:
    st.subheader("What the model says")
    st.caption("The class of the whole text, and how sure the model is.")
    table = {"class": [model.classes[i] for i in ids[0]], "probability": probabilities[0]}
else:
    st.subheader("What comes next")
    st.caption(
        f"For each target piece read so far, the {MOST_PROBABLE} most probable next pieces "
        "and their probabilities."
    )
    table = {"position": range(len(ids)), "after": trace.tgt.pieces}
    for rank in range(ids.shape[1]):
        table[f"{rank + 1}."] = [
            f"{model.tokenizer.piece(id)}  {probability:.1%}"
            for id, probability in zip(ids[:, rank], probabilities[:, rank], strict=True)
        ]
st.dataframe(
    pd.DataFrame(table),
    hide_index=True,
    height="content" if len(ids) <= 40 else 1000,
    column_config={"probability": st.column_config.NumberColumn(format="percent")},
    alt="The model's most probable answers",
)
