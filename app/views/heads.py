"""Every head in numbers, and the textbook names that it is nearest to."""

import pandas as pd
import streamlit as st

from app import catalog, compute, labels, session

st.markdown(
    "One row is one head: the names from the textbooks that it is nearest to, and the numbers "
    "that say so. Click the head of a column to sort; select a row to look at that head.  \n"
    "*Try: sort by entropy. Are the most pointed heads in the first layers or in the last?*"
)

run = session.run()
view, focus = session.view(run), session.focus()
trace = compute.trace_of(view, run)

st.subheader(labels.head_name(trace, focus.kind, focus.layer, focus.head))
st.markdown(labels.card(trace, focus.kind, focus.layer, focus.head))

tables = {"This sentence": ("here", compute.measured_of(view, run))}
if known := catalog.examples(view.name):
    over = compute.measured_over(view, session.example_runs())
    tables[f"The {len(known)} example sentences of this model"] = ("examples", over)


def focus_on(rows: list[dict], key: str) -> None:
    for row in st.session_state[key].selection.rows:
        one = rows[row]
        session.choose(kind=one["attention"], layer=one["layer"], head=one["head"])


for title, (key, measured) in tables.items():
    st.subheader(title)
    rows = labels.head_table(measured, trace)
    st.dataframe(
        pd.DataFrame(rows),
        key=f"{key}_table",
        hide_index=True,
        on_select=lambda rows=rows, key=key: focus_on(rows, f"{key}_table"),
        selection_mode="single-row",
        column_config={
            name: st.column_config.NumberColumn(format="percent")
            for name in ("nearest, score", "second, score", *labels.SHARES.values())
        }
        | {
            name: st.column_config.NumberColumn(f"{name} ({unit})", format="%.2f")
            for name, unit in labels.UNITS.items()
        },
        alt=f"Numbers of every head: {title}",
    )
st.caption(
    "Shares are means over rows that have a choice: rows with one key alone, such as the first "
    "of a causal decoder, are left out, and so is padding. A score counts from what a head that "
    "looks at everything alike would have (0 %) to the textbook's head (100 %)."
)
