"""Every head in numbers, beside the card of the selected one."""

import pandas as pd
import streamlit as st

from app import catalog, compute, labels, session
from app.settings import EXAMPLES, SETTINGS, THIS_SENTENCE
from app.thumbnails import thumbnails
from model.analysis.head_metrics import THRESHOLD

TOP, ROW, MOST = 41, 44, 376  # pixels: the heads of the columns, a row, and all together
TABLE = "heads_table"

run = session.run()
view, focus = session.view(run), session.focus()
trace = compute.trace_of(view, run)

with st.container(horizontal=True, vertical_alignment="center"):
    measured_on = THIS_SENTENCE
    if catalog.examples(view.name):
        measured_on = session.draw("measured_on", look={"label_visibility": "collapsed"})
    st.markdown(SETTINGS["pattern"].label, width="content", help=SETTINGS["pattern"].help)
    pattern = session.draw("pattern", look={"width": 220, "label_visibility": "collapsed"})

if measured_on == EXAMPLES:
    measured = compute.measured_over(view, session.example_runs())
else:
    measured = compute.measured_of(view, run)
pictures = compute.cached(
    view,
    run,
    "thumbnails",
    lambda: thumbnails(trace.attention),
    lambda urls: sum(len(url) for layers in urls.values() for heads in layers for url in heads),
)
ablation = {}
if measured_on == THIS_SENTENCE and compute.is_short(run):  # else asked for, as an order of tiles
    ablation = compute.effects_of(view, run, "heads")
rows = labels.head_table(measured, trace, pictures, pattern, ablation)
heads = [(row["attention"], row["layer"], row["head"]) for row in rows]
chosen = session.values()
selected = chosen["kind"], chosen["layer"], chosen["head"]


def select() -> None:
    for row in st.session_state[TABLE].selection.rows:
        if heads[row] != selected:  # else it is the row we selected, told with another choice
            session.choose(**dict(zip(("kind", "layer", "head"), heads[row], strict=True)))


table, card = st.columns([3, 2])
with table:
    if rows:
        session.select_row(TABLE, heads.index(selected) if selected in heads else None)
        st.dataframe(
            pd.DataFrame(rows),
            key=TABLE,
            hide_index=True,
            height=min(MOST, TOP + ROW * len(rows)),
            row_height=ROW,
            on_select=select,
            selection_mode="single-row",
            column_config={
                "weights": st.column_config.ImageColumn(
                    width=70, help="For the sentence above. Hatched: masked."
                )
            }
            | {name: st.column_config.Column(width=50) for name in ("layer", "head")}
            | {
                "ablation": st.column_config.NumberColumn(
                    format="%.2f",
                    help="By how much the log-probability of the output changes without the head.",
                )
            }
            | {name: st.column_config.NumberColumn(format="%.0f %%") for name in labels.PERCENTAGES}
            | {
                name: st.column_config.NumberColumn(f"{name} ({unit})", format="%.1f")
                for name, unit in labels.UNITS.items()
            },
            alt=f"Every head in numbers: {measured_on}",
        )
    else:
        st.info(f"No head of this model has the pattern “{pattern}” here. Choose another one.")
with card:
    st.markdown(f"#### {labels.head_name(trace, focus.kind, focus.layer, focus.head)}")
    st.markdown(labels.card(trace, focus.kind, focus.layer, focus.head))
    if rows and selected not in heads:
        st.caption(f"Not in the table: it does not have the pattern “{pattern}”.")
    st.caption(
        "Score: 100 % is the head of the textbook, 0 % attends to all tokens alike (for “broad”: "
        f"to one). From {labels.percent(THRESHOLD)} on a head has the pattern. Shares are means "
        "over rows with a choice, without padding."
    )
    st.markdown(
        "*Try: click the column entropy to sort. Do the first layers have the sharpest heads?*"
    )
