"""The same weights in torch.nn.Transformer: do the two agree, head by head?"""

import numpy as np
import pandas as pd
import streamlit as st

from headlight.app import selection
from headlight.app.charts import blank_empty_rows
from headlight.app.components.matrices import matrices
from headlight.app.components.matrix import compared
from headlight.app.results import head_results, system_results
from headlight.app.shell import frame
from headlight.app.state import messages, session
from headlight.app.text import exercises, notices, part_names
from headlight.app.text.formats import escaped, listed
from headlight.model.probing.reference import without_counterpart

HEADS_WITHIN = 1e-5
LOGITS_WITHIN = 1e-5  # times the largest logit, where that is above 1


def page() -> None:
    frame.explain(
        "Our Transformer and PyTorch's, with the same weights, sentence, masks and changes. The "
        "third picture is the first minus the second, in full colour from the tolerance on. Rows "
        "are queries, columns are keys.",
        exercises.COMPARED,
    )

    shown, focus = selection.shown(), session.focus()
    view = shown.view
    if view.reference is None:
        st.info(
            "torch.nn.Transformer has no counterpart for this model's "
            f"{listed(without_counterpart(view.model))}. Choose another model to compare."
        )
        raise messages.NothingToShow
    trace = shown.whole
    twin = system_results.reference_of(shown)
    assert twin is not None
    reference, timing = twin

    query, key = part_names.axes(trace, focus)
    ours = trace.attention[focus.kind][focus.layer, focus.head]
    theirs = reference.attention[focus.kind][focus.layer, focus.head]

    allowed = LOGITS_WITHIN * max(1.0, float(np.abs(trace.logits).max()))
    rows = [
        {
            "part": f"{kind.capitalize()} {trace.kinds[kind][layer].layer + 1}.{head + 1}",
            "max |Δ|": float(np.abs(trace.attention[kind][layer, head] - other).max()),
            "tolerance": HEADS_WITHIN,
        }
        for kind in trace.attention
        for layer, heads in enumerate(reference.attention[kind])
        for head, other in enumerate(heads)
    ]
    logits_row = {
        "part": "Logits",
        "max |Δ|": float(np.abs(trace.logits - reference.logits).max()),
        "tolerance": allowed,
    }
    table = pd.DataFrame([logits_row, *rows])
    table["agrees"] = table["max |Δ|"] <= table["tolerance"]

    heads, logits = table["max |Δ|"][1:].max(), logits_row["max |Δ|"]
    if undefined := notices.first_undefined(reference.attention, trace):
        st.warning(undefined)
    elif shown.not_finite[0]:
        frame.finding("There is nothing to compare: not all numbers of this run are finite.")
    elif bool(table["agrees"].to_numpy().all()):
        frame.finding(
            f"**torch.nn.Transformer** gives the same weights: no head differs by more than "
            f"{heads:.1e}, no logit by more than {logits:.1e}."
        )
    else:
        worst = table[~table["agrees"]].iloc[0]
        frame.finding(
            f"**They differ**: {worst['part']} by {worst['max |Δ|']:.1e}, where at most "
            f"{worst['tolerance']:.1e} is rounding."
        )

    row, column = (session.chosen_token(setting) for setting in ("follow", "to"))
    is_chosen = 0 <= row < len(ours) and 0 <= column < len(key.labels)
    if not 0 <= row < len(ours):
        row = head_results.opening_row(shown, focus)
    if not 0 <= column < len(key.labels):
        column = int(ours[row].argmax())
    pictures = compared(
        {"ours": blank_empty_rows(ours), "torch.nn.Transformer": theirs},
        "ours − PyTorch's",
        within=HEADS_WITHIN,
        row_name=query.title,
        column_name=key.title,
        rows=query.labels,
        columns=key.labels,
        follow=row,
        column=column,
        chooses="follow",
        chooses_column="to",
        single=True,
        pinned=is_chosen,
    )
    matrices(
        pictures,
        key="comparison",
        on_choose=session.choose_tokens,
        palette=session.palette(),
    )
    moments = part_names.moments(trace, focus.kind) or [f"Row “{word}”" for word in query.labels]
    both = float(ours[row, column]), float(theirs[row, column])
    st.markdown(cell_compared(moments[row], key.labels[column], *both))

    with frame.numbers():
        st.markdown(
            f"One pass: ours **{timing.ours * 1e3:.1f} ms**, PyTorch's "
            f"**{timing.theirs * 1e3:.1f} ms**"
        )
        numbers = {  # name → pixels
            name: st.column_config.NumberColumn(format="%.1e", width=width)
            for name, width in (("max |Δ|", 68), ("tolerance", 86))
        }
        st.dataframe(
            table,
            hide_index=True,
            column_config={
                "part": st.column_config.Column(width=92),
                **numbers,
                "agrees": st.column_config.Column(width=64),
            },
            alt="Largest difference for every head and for the logits",
        )


def cell_compared(row: str, key: str, ours: float, theirs: float) -> str:
    """One weight in both systems; `row` in words."""
    difference = f", difference {ours - theirs:.0e}" if ours != theirs else ""
    return (
        f"{escaped(row)}: weight on “{escaped(key)}” **{ours:.6f}** here, **{theirs:.6f}** in "
        f"PyTorch{difference}."
    ).replace("-", "−")
