"""What every head, sublayer and token is for: each changed by itself, and what that does."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from app import charts, compute, effects, labels, session
from app.components.figure import figure
from app.settings import SWEEPS

HEIGHT = 400  # pixels
TABLE = "effects_table"

run = session.run()
view = session.view(run)
trace = compute.trace_of(view, run)
with st.container(horizontal=True, vertical_alignment="bottom", key="controls"):
    name = SWEEPS[session.draw("sweep")]
    effects.draw_score(trace)
run = replace(run, other=session.other_run())
if (tokens := compute.tokens_of_sweep(view, run, name)) > (most := compute.most_tokens(view)):
    st.info(labels.too_large_a_sweep(tokens, most))
    raise session.NothingToShow
swept = effects.sweep_of(view, run, name, effects.score(view, run))
rows = effects.table(swept, trace)


picture, table = st.columns([3, 2])
with picture:
    figure(
        charts.effects(
            {
                one.title: (one.values, one.rows, one.columns)
                for one in effects.panels(swept, trace)
            },
            "effect",
            HEIGHT,
        ),
        key="effects_figure",
        alt=f"Effect of {name}",
        projector=session.values()["projector"],
    )
with table:
    st.dataframe(
        pd.DataFrame(rows).drop(columns="head"),
        key=TABLE,
        hide_index=True,
        height=HEIGHT,
        on_select=session.choosing(TABLE, [row["head"] or {} for row in rows]),
        selection_mode="single-row",
        column_config={"effect": st.column_config.NumberColumn(format="%.3f", width="small")},
        alt=f"Effect of {name}, each change a row",
    )
st.caption(labels.sweep_explained(swept.score, session.context().has_other))
