"""Home: what every head attends to, one head in full, and the model's predictions."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from app import charts, compute, labels, session
from app.components.figure import figure
from app.components.head_grid import head_grid
from app.components.packing import pack_trace
from model.analysis.reading import as_table

MOST_PROBABLE = 5
MOST_ROWS = 20_000  # of the table

st.markdown(
    "Each tile is one head: a **row** is a piece that asks, a **column** a piece that is looked "
    "at, and each row adds up to 1. Point at a piece: filled is where it looks, underlined who "
    "looks at it.  \n*Try: walk through the layers. Where does a head stop looking at neighbours?*"
)

run = session.run()
model = session.view(run)
trace = compute.trace_of(model, run)
chosen, focus, reading = session.values(), session.focus(), session.reading()
for side, typed in zip(
    trace.sides.values(), (chosen["line"], chosen["target"].strip()), strict=False
):
    for sentence in labels.notices(side.title, typed, trace.texts[side.name]):
        st.info(sentence)

packed = compute.cached(
    model, run, ("grid", reading.words, reading.special), lambda: pack_trace(trace, reading), len
)
head_grid(
    packed,
    session.look(model, run),
    on_focus=lambda tile: session.focus_on(**tile),
    fresh=session.is_new("grid", hash(packed)),
)

picture = reading.apply(
    trace.attention[focus.kind], focus.layer, focus.head, *trace.texts_of(focus.kind)
)
query, key = (
    replace(axis, labels=tokens)
    for axis, tokens in zip(
        labels.axes(trace, focus.kind), (picture.query, picture.key), strict=True
    )
)
name = labels.picture_name(trace, focus.kind, focus.layer, focus.head, reading.average)
st.subheader(name)
if picture.notes:
    st.caption(" ".join(picture.notes))
unread = trace.attention[focus.kind][focus.layer, focus.head]
if message := labels.empty_rows(unread, labels.axes(trace, focus.kind)[0]):
    st.warning(message)
if not reading.average:
    st.markdown(labels.card(trace, focus.kind, focus.layer, focus.head))
figure(
    charts.attention(picture.weights, query, key),
    key="head_figure",
    alt=name,
    projector=chosen["projector"],
)

table = session.draw("numbers")
if table.open:
    columns, n_omitted = as_table(picture.weights, query.labels, key.labels, MOST_ROWS)
    if n_omitted:
        table.caption(
            f"The largest {MOST_ROWS:,} weights; {n_omitted:,} smaller ones are left out."
        )
    table.dataframe(pd.DataFrame(columns), hide_index=True, alt=f"Weights of {name}")

ids, probabilities = trace.most_probable(MOST_PROBABLE)
predicted, outputs = trace.predicted, model.checkpoint.outputs
if predicted.predicts == "class":
    st.subheader("What the model says")
    st.caption("The class of the whole text, and how sure the model is.")
    answers = {"class": outputs(ids[0]), "probability": probabilities[0]}
else:
    st.subheader("What comes next")
    st.caption(
        f"For each {predicted.title} piece read so far, the {MOST_PROBABLE} most probable next "
        "pieces and their probabilities."
    )
    answers = {"position": range(len(ids)), "after": trace.texts[predicted.name].tokens}
    for rank in range(ids.shape[1]):
        answers[f"{rank + 1}."] = [
            f"{output}  {probability:.1%}"
            for output, probability in zip(
                outputs(ids[:, rank]), probabilities[:, rank], strict=True
            )
        ]
st.dataframe(
    pd.DataFrame(answers),
    hide_index=True,
    height="content" if len(ids) <= 40 else 1000,
    column_config={"probability": st.column_config.NumberColumn(format="percent")},
    alt="The model's most probable answers",
)
