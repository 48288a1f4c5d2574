"""All heads with their measures, from one sentence or many, beside the card of the selected
head."""

import streamlit as st

from headlight.app import selection
from headlight.app.components.thumbnails import thumbnails
from headlight.app.results import head_results, memoize, passes, sweep_results
from headlight.app.shell import frame, panel, sweeps
from headlight.app.state import catalog, session, widgets
from headlight.app.state.options import (
    EXAMPLES,
    SCATTER,
    SENTENCES,
    SURVEY,
    THIS_SENTENCE,
)
from headlight.app.text import head_card, part_names
from headlight.app.views import _head_displays as shown
from headlight.app.views import _head_table
from headlight.model.analysis.head_metrics import THRESHOLD
from headlight.model.probing.trace import Trace
from headlight.model.rounding import percent
from headlight.model.surveys.survey import ALIGNMENT, Survey

BYTES = 10_000  # bytes of a row with its picture, roughly


def finding(mark: str, over: Survey | None, measured_on: str) -> None:
    """Say what each row or point stands for, unless the finding is about a change."""
    where = {THIS_SENTENCE: "on this sentence", EXAMPLES: "on the example sentences"}
    measured = f"over {over.card['sentences']:,} sentences" if over else where[measured_on]
    if not frame.effect().said:
        frame.finding(f"Each {mark} is one head, measured {measured}.")


def page() -> None:
    run = selection.run()
    view, focus = selection.view(run), session.focus()
    trace, chosen = passes.trace_of(view, run), session.values()
    survey, why_none, is_faulty = head_results.survey_of(view)

    with frame.controls():
        measured_on = widgets.draw(
            "measured_on",
            widget_options={"label_visibility": "collapsed", "width": 135},
            options=[
                THIS_SENTENCE,
                *([EXAMPLES] if catalog.examples(view.name) else []),
                *([] if view.checkpoint.lacks else [SURVEY]),
            ],
            default=SURVEY if survey else THIS_SENTENCE,
        )
        drawn_as = widgets.draw("heads_as", widget_options={"label_visibility": "collapsed"})
        pattern = widgets.draw(
            "pattern", widget_options={"width": 140, "label_visibility": "collapsed"}
        )

    over = survey if measured_on == SURVEY else None
    if measured_on == EXAMPLES:
        measured = head_results.measured_over(view, selection.example_runs())
    elif over:
        measured = head_results.surveyed_of(view, run, over)
    else:
        measured = head_results.measured_of(view, run)
    pictures = memoize.memoize_pass(
        view,
        run,
        "thumbnails",
        lambda: thumbnails(trace.attention if isinstance(trace, Trace) else trace.tiles),
        lambda urls: sum(len(url) for layers in urls.values() for heads in layers for url in heads),
    )
    ablation = {}
    # Slow measures are computed only if the order of tiles asks for them.
    if measured_on == THIS_SENTENCE and sweep_results.is_quick(view, run):
        ablation = sweeps.by_head(view, run, "heads")

    def rows_of() -> list[dict]:
        return _head_table.head_table(measured, trace, pictures, pattern, ablation, over)

    key = "rows of heads", pattern, over
    rows = (
        memoize.memoize_pass(view, run, key, rows_of, lambda rows: BYTES * len(rows))
        if over
        else rows_of()
    )
    heads = shown.Heads(rows, measured_on, over)

    if message := _head_table.none_matches(rows, pattern):
        frame.finding(message)
    if is_faulty and measured_on != SURVEY:
        frame.notices().info(why_none)
    exercise = None
    if measured_on == SURVEY and not survey:
        st.info(why_none)
    elif drawn_as == SENTENCES:
        exercise = shown.sentences(view, measured[focus.kind], over)
    elif not rows:
        how = "Choose another pattern."
        if pattern == ALIGNMENT and survey:
            how = f"It takes many sentences: choose “{SURVEY}” above."
        st.info(f"The pattern “{pattern}” cannot be measured here. {how}")
    elif drawn_as == SCATTER:
        finding("point", over, measured_on)
        shown.scatter(heads, chosen["projector"])
        exercise = _head_table.on_focus_and_loss(rows)
    else:
        finding("row", over, measured_on)
        shown.table(heads)
        kinds = trace.kinds.items()
        depths = {kind: 1 + max(site.layer for site in sites) for kind, sites in kinds}
        exercise = _head_table.on_focus(rows, depths)
    with frame.explanation():
        st.markdown(f"**{part_names.head_name(trace, focus.kind, focus.layer, focus.head)}**")
        if rows and heads.selected is None:
            st.info(
                f"This head is not in the table: it does not match the pattern “{pattern}”. Click "
                "a row to select another one."
            )
        gone = head_card.is_pruned(
            view.checkpoint.card, focus.kind, chosen["layer"] - 1, focus.head
        )
        numbers = head_results.card_of(view, run, focus.kind, focus.layer, focus.head)
        st.markdown(head_card.PRUNED if gone else f"*In this sentence*: {numbers}")
        if survey:
            st.markdown(
                head_card.in_all_sentences(survey, focus.kind, chosen["layer"] - 1, focus.head)
            )
            panel.draw_importance()
        st.caption(
            _head_table.surveyed_on(over, run == passes.as_trained(run))
            if over
            else "Match: 100% is a perfect example; 0% attends equally to all tokens (for “broad”: "
            f"to one token). From {percent(THRESHOLD)} on, a head has the pattern. "
            "Shares are means over rows with more than one key, without padding."
        )
        if exercise:
            frame.draw_exercise(exercise)
