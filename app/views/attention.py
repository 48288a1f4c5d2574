"""Home: what every head attends to, the selected head in full, and the model's predictions."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from app import acts, charts, compute, labels, session
from app.charts import Axis
from app.components.figure import figure
from app.components.head_grid import head_grid
from app.components.packing import answers_of, pack_trace
from app.look import look
from model.analysis.domain import Domain
from model.analysis.reading import as_table

MOST_ROWS = 20_000  # of the table
WINDOW = 512  # tokens along a side of the figure: 1.4 MB


def windows(*axes: Axis) -> list[slice]:
    """Of each axis as many tokens as are shown, from one on that is chosen where not all are."""
    found = []
    with st.container(horizontal=True):
        for name, axis in zip(("query", "key"), axes, strict=True):
            over = len(axis.labels) - WINDOW
            first = session.draw(f"first_{name}", most=over + 1) - 1 if over > 0 else 0
            found.append(slice(first, first + WINDOW))
    return found


run = session.run()
model = session.view(run)
less = session.less_run()
# Of a difference the largest is looked for first: it takes all weights at once.
trace = (compute.whole_trace_of if less else compute.trace_of)(model, run)
chosen, focus, reading = session.values(), session.focus(), session.reading()
above = st.container()
for side, typed in zip(trace.sides.values(), session.typed(), strict=False):
    for sentence in labels.notices(side.title, typed, trace.texts[side.name]):
        st.info(sentence)

if chosen["order"] == "change" and not any(
    shares.any() for shares in compute.change_of(model, run).values()
):
    st.caption("Nothing changes the heads, so there is no order by change. Switch a mask off.")

packed = compute.cached(
    model,
    run,
    ("grid", reading.words, reading.special, less),
    lambda: pack_trace(
        trace,
        reading,
        answers_of(trace, model.checkpoint.outputs),
        compute.whole_trace_of(session.view(less), less) if less else None,
        None if less else compute.attention_of(model, run),
    ),
    len,
)
head_grid(
    packed,
    look(model, run),
    on_focus=session.focus_on,
    on_query=session.follow,
    on_act=acts.act,
    fresh=session.is_new("grid", hash(packed)),
)
# It may take a pass of its own, which the grid need not wait for.
domain = Domain.of_card(model.checkpoint.card)
if domain and compute.is_unlike(domain, *session.own_run()):
    above.info(labels.unlike_training(domain, model.checkpoint.card))

head = focus.kind, focus.layer, focus.head
picture = compute.picture_of(model, run, *head, reading)
query, key = (
    replace(axis, labels=tokens)
    for axis, tokens in zip(
        labels.axes(trace, focus.kind), (picture.query, picture.key), strict=True
    )
)
name = labels.picture_name(trace, focus.kind, focus.layer, focus.head, reading.average)
if picture.notes:
    st.caption(" ".join(picture.notes))
gone = labels.is_gone(model.checkpoint.card, focus.kind, chosen["layer"] - 1, focus.head)
if not gone and (
    message := labels.empty_rows(
        compute.head_of(model, run, *head), labels.axes(trace, focus.kind)[0]
    )
):
    st.warning(message)
st.subheader("The selected head in numbers")
if not reading.average:
    st.markdown(labels.GONE if gone else compute.card_of(model, run, *head))
    survey, *_ = compute.survey_of(model)
    if survey:
        st.markdown(labels.always(survey, focus.kind, chosen["layer"] - 1, focus.head))
table = session.draw("numbers")
if table.open:
    columns, n_omitted = as_table(picture.weights, query.labels, key.labels, MOST_ROWS)
    if n_omitted:
        table.caption(
            f"The largest {MOST_ROWS:,} weights; {n_omitted:,} smaller ones are left out."
        )
    table.dataframe(pd.DataFrame(columns), hide_index=True, alt=f"Weights of {name}")
zoom = session.draw("zoom")
if zoom.open:
    with zoom:
        rows, columns = windows(query, key)
        figure(
            charts.attention(
                picture.weights[rows, columns],
                replace(query, labels=query.labels[rows]),
                replace(key, labels=key.labels[columns]),
            ),
            key="head_figure",
            alt=name,
            projector=chosen["projector"],
        )
st.caption(
    "Each tile is one head: a **row** is a query, a **column** a key, and each row sums to 1; what "
    "is hatched is masked. Point at a token: filled is what it attends to, underlined what attends "
    "to it."
)
