"""Every head in numbers, of one sentence or of many, beside the card of the selected one."""

import streamlit as st

from app import catalog, compute, effects, labels, session
from app.settings import EXAMPLES, SCATTER, SENTENCES, SETTINGS, SURVEY, TABLE, THIS_SENTENCE
from app.thumbnails import thumbnails
from app.views import _head_table
from app.views import _heads_shown as shown
from model.analysis.head_metrics import THRESHOLD
from model.probing.trace import Trace

BYTES = 10_000  # about, of a row with its picture
TRY = {
    TABLE: "click the column entropy to sort. Do the first layers have the sharpest heads?",
    SCATTER: "ablation over entropy. Does more depend on the heads that are sharp?",
    SENTENCES: "click the last sentence. Why does the head do less of it there?",
}

run = session.run()
view, focus = session.view(run), session.focus()
trace, chosen = compute.trace_of(view, run), session.values()
survey, why_none, is_faulty = compute.survey_of(view)

with st.container(horizontal=True, vertical_alignment="center"):
    measured_on = session.draw(
        "measured_on",
        look={"label_visibility": "collapsed"},
        options=[THIS_SENTENCE, *([EXAMPLES] if catalog.examples(view.name) else []), SURVEY],
        default=SURVEY if survey else THIS_SENTENCE,
    )
    drawn_as = session.draw("heads_as", look={"label_visibility": "collapsed"})
    st.markdown(SETTINGS["pattern"].label, width="content", help=SETTINGS["pattern"].help)
    pattern = session.draw("pattern", look={"width": 180, "label_visibility": "collapsed"})

over = survey if measured_on == SURVEY else None
if measured_on == EXAMPLES:
    measured = compute.measured_over(view, session.example_runs())
elif over:
    measured = compute.surveyed_of(view, run, over)
else:
    measured = compute.measured_of(view, run)
pictures = compute.cached(
    view,
    run,
    "thumbnails",
    lambda: thumbnails(trace.attention if isinstance(trace, Trace) else trace.tiles),
    lambda urls: sum(len(url) for layers in urls.values() for heads in layers for url in heads),
)
ablation = {}
# What takes long is asked for, as an order of tiles.
if measured_on == THIS_SENTENCE and compute.is_quick(view, run):
    ablation = effects.by_head(view, run, "heads")


def rows_of() -> list[dict]:
    return _head_table.head_table(measured, trace, pictures, pattern, ablation, over)


key = "rows of heads", pattern, over
rows = (
    compute.cached(view, run, key, rows_of, lambda rows: BYTES * len(rows)) if over else rows_of()
)
heads = shown.Heads(rows, measured_on, over)

if is_faulty and measured_on != SURVEY:
    st.info(why_none)
left, card = st.columns([3, 2])
with left:
    if measured_on == SURVEY and not survey:
        st.info(why_none)
    elif drawn_as == SENTENCES:
        shown.sentences(view, measured[focus.kind], over)
    elif not rows:
        st.info(f"No head of this model has the pattern “{pattern}” here. Choose another one.")
    elif drawn_as == SCATTER:
        shown.scatter(heads, chosen["projector"])
    else:
        shown.table(heads)
with card:
    st.markdown(f"#### {labels.head_name(trace, focus.kind, focus.layer, focus.head)}")
    gone = labels.is_gone(view.checkpoint.card, focus.kind, chosen["layer"] - 1, focus.head)
    numbers = compute.card_of(view, run, focus.kind, focus.layer, focus.head)
    st.markdown(labels.GONE if gone else numbers)
    if survey:
        st.markdown(labels.always(survey, focus.kind, chosen["layer"] - 1, focus.head))
    if rows and heads.selected is None:
        st.caption(f"Not in the table: it does not have the pattern “{pattern}”.")
    st.caption(
        _head_table.surveyed_on(over, run == compute.as_trained(run))
        if over
        else "Score: 100 % is the head of the textbook, 0 % attends to all tokens alike (for "
        f"“broad”: to one). From {labels.percent(THRESHOLD)} on a head has the pattern. Shares are "
        "means over rows with a choice, without padding."
    )
    st.markdown(f"*Try: {TRY[drawn_as]}*")
