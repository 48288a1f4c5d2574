"""Where one predicted token comes from: the parts of the model, and the words of the source."""

import numpy as np
import pandas as pd
import streamlit as st

from app import charts, compute, effects, labels, session
from app.components.figure import figure
from model.analysis.attribution import METHODS, source_kind

MOST = 12  # parts that have a bar of their own
HEIGHT = 400  # pixels
TABLE = "terms_table"

run = session.run()
view = session.view(run)
trace = compute.trace_of(view, run)
with st.container(horizontal=True, vertical_alignment="bottom", key="controls"):
    effects.draw_score(trace, whole=False)
score, focus = effects.score(view, run, whole=False), session.focus()
answers = view.checkpoint.outputs([one for one in (score.wanted, score.against) if one is not None])
wanted = " less ".join(f"“{labels.escaped(answer)}”" for answer in answers)
projector = session.values()["projector"]
head = (focus.layer, focus.head) if focus.kind == source_kind(view.model) else None
sum_of = compute.decomposition_of(view, run, score)
words = compute.attribution_of(view, run, score, head)


def select() -> None:
    for row in st.session_state[TABLE].selection.rows:
        if rows[row]["settings"]:
            session.choose(**rows[row]["settings"])


parts, source = st.columns([2, 3])
with parts:
    st.subheader(f"What adds up to the logit of {wanted}: {labels.signed(sum_of.logit)}")
    largest = sum_of.largest()
    others = sum(value for _, value in largest[MOST:])
    names = [labels.term_name(term) for term, _ in largest[:MOST]]
    values = [value for _, value in largest[:MOST]]
    figure(
        charts.bars([*names, "all others"], [*values, others], "adds to the logit", HEIGHT),
        key="terms_figure",
        alt=f"What adds to the logit of {wanted}",
        projector=projector,
        compact=True,
    )
with source:
    st.subheader(f"The words of the source behind {wanted}")
    st.markdown(words.in_words())
    shown = [name for name in METHODS if name in words.values]
    if words.words:
        scaled = [words.values[name] / (np.abs(words.values[name]).max() or 1) for name in shown]
        labelled = [f"{i} {word}" for i, word in enumerate(words.words, start=1)]
        figure(
            charts.effects(
                {"": (np.array(scaled), charts.Axis("", shown), charts.Axis("", labelled))},
                "share of the largest",
                HEIGHT - 60,
            ),
            key="words_figure",
            alt=f"How much each source word has to do with {wanted}, by each method",
            projector=projector,
            compact=True,
        )

table, correlations = st.columns([2, 3])
rows = [
    {
        "adds": value,
        "part": labels.term_name(term),
        "settings": term.head is not None
        and {"kind": term.kind, "layer": term.layer + 1, "head": term.head + 1},
    }
    for term, value in largest
]
with table:
    st.dataframe(
        pd.DataFrame(rows).drop(columns="settings"),
        key=TABLE,
        hide_index=True,
        height=HEIGHT,
        on_select=select,
        selection_mode="single-row",
        column_config={"adds": st.column_config.NumberColumn(format="%.3f", width="small")},
        alt="Every part of the model and what it adds to the logit",
    )
    st.caption(labels.TERMS)
with correlations:
    if ranks := words.correlations():
        matrix = np.array([[ranks[one, two] for two in shown] for one in shown])
        figure(
            charts.matrix(
                matrix, charts.Axis("", shown), charts.Axis("", shown), "ρ", (-1, 1), ".2f"
            ),
            key="ranks_figure",
            alt="Rank correlation of every two methods",
            projector=projector,
        )
    st.caption(labels.METHODS)
