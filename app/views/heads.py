"""All heads as live maps in groups by habit; their numbers fold below."""

import streamlit as st

from headlight.app import selection
from headlight.app.components.gallery import gallery
from headlight.app.components.thumbnails import thumbnails
from headlight.app.results import head_results, memoize, sweep_results
from headlight.app.results.gallery import gallery_heads, gallery_options
from headlight.app.results.shown import Shown
from headlight.app.shell import frame, panel, sweeps
from headlight.app.shell.grid_display import off_tiles
from headlight.app.shell.layout import menu
from headlight.app.state import catalog, session, widgets
from headlight.app.state.options import (
    EXAMPLES,
    SCATTER,
    SENTENCES,
    SURVEY,
    TABLE,
    THIS_SENTENCE,
)
from headlight.app.text import head_card, part_names
from headlight.app.text.exercises import Exercise
from headlight.app.views import _head_displays as displays
from headlight.app.views import _head_table
from headlight.model.analysis.head_metrics import THRESHOLD, Measured
from headlight.model.probing.trace import Trace
from headlight.model.rounding import percent
from headlight.model.surveys.survey import ALIGNMENT, Survey

BYTES = 10_000  # bytes of a row with its picture, roughly
MEASURED = {
    THIS_SENTENCE: "Measured on this sentence.",
    EXAMPLES: "Measured on the example sentences.",
    SURVEY: "",  # the legend of the bars says over how many
}


def page() -> None:
    shown, focus = selection.shown(), session.focus()
    view, trace = shown.view, shown.trace
    survey, why_none, is_faulty = head_results.survey_of(view)
    with frame.controls():
        measured_on = widgets.draw(
            "measured_on",
            widget_options={"label_visibility": "collapsed", "width": 150},
            options=[
                THIS_SENTENCE,
                *([EXAMPLES] if catalog.examples(view.name) else []),
                *([] if view.checkpoint.lacks else [SURVEY]),
            ],
            default=SURVEY if survey else THIS_SENTENCE,
        )
    over = survey if measured_on == SURVEY else None
    if measured_on == EXAMPLES:
        measured = head_results.measured_over(view, selection.example_runs())
    elif over:
        measured = head_results.surveyed_of(shown, over)
    else:
        measured = head_results.measured_of(shown)

    note = MEASURED[measured_on]
    if not over and (measured_on == SURVEY or is_faulty):
        frame.notices().info(why_none)
        note = MEASURED[THIS_SENTENCE]
    elif not over and not survey:
        note = f"{note} Without a survey, it is not known what is lost without a head."
    gallery(
        head_results.packed_of(shown, session.reading()),
        gallery_options(
            gallery_heads(measured, trace, over, off_tiles(shown.run)),
            trace.kinds,
            focus,
            over,
            note,
            not frame.effect().said,
            "heads",
        ),
        session.palette(),
    )
    exercise = None
    shows = session.values().get("heads_as", TABLE)
    # Addresses from before the gallery ask for a plot or for sentences: they open on them.
    fold = widgets.draw("all_heads", default=shows != TABLE)
    if fold.open:
        with fold:
            exercise = numbers(shown, measured, measured_on, over)
    with frame.controls(), menu("?", "about_heads") as about:
        if about.open:
            explain(shown, survey, over, exercise)


def numbers(
    shown: Shown,
    measured: dict[str, Measured],
    measured_on: str,
    over: Survey | None,
) -> Exercise | None:
    """The numbers of all heads, as a table or a plot, or the sentences that show the selected one;
    and an exercise on them."""
    trace, focus = shown.trace, session.focus()
    with st.container(horizontal=True, vertical_alignment="center"):
        drawn_as = widgets.draw("heads_as", widget_options={"label_visibility": "collapsed"})
        pattern = widgets.draw(
            "pattern", widget_options={"width": 200, "label_visibility": "collapsed"}
        )
    if drawn_as == SENTENCES:
        return displays.sentences(shown.view, measured[focus.kind], over)
    stops = session.stops()
    pictures = memoize.memoize_pass(
        shown,
        ("thumbnails", *stops),
        lambda: thumbnails(trace.attention if isinstance(trace, Trace) else trace.tiles, stops),
        lambda urls: sum(len(url) for layers in urls.values() for heads in layers for url in heads),
    )
    ablation = {}
    # Slow measures are computed only if the order of tiles asks for them.
    if measured_on == THIS_SENTENCE and sweep_results.is_quick(shown):
        ablation = sweeps.by_head(shown, "heads")

    def rows_of() -> list[dict]:
        return _head_table.head_table(measured, trace, pictures, pattern, ablation, over)

    key = "rows of heads", pattern, over, *stops
    rows = (
        memoize.memoize_pass(shown, key, rows_of, lambda rows: BYTES * len(rows))
        if over
        else rows_of()
    )
    heads = displays.Heads(rows, measured_on, over)
    if message := _head_table.none_matches(rows, pattern):
        st.caption(message)
    if not rows:
        how = "Choose another pattern."
        if pattern == ALIGNMENT and head_results.survey_of(shown.view)[0]:
            how = f"It takes many sentences: choose “{SURVEY}” above."
        st.info(f"The pattern “{pattern}” cannot be measured here. {how}")
        return None
    if drawn_as == SCATTER:
        displays.scatter(heads, session.values()["projector"])
        return _head_table.on_focus_and_loss(rows)
    if heads.selected is None:
        st.caption(
            f"The selected head is not in the table: it does not match the pattern “{pattern}”."
        )
    displays.table(heads)
    kinds = trace.kinds.items()
    depths = {kind: 1 + max(site.layer for site in sites) for kind, sites in kinds}
    return _head_table.on_focus(rows, depths)


def explain(
    shown: Shown,
    survey: Survey | None,
    over: Survey | None,
    exercise: Exercise | None,
) -> None:
    """What is known of the selected head, and how all of them were measured."""
    trace, focus = shown.trace, session.focus()
    numbered = focus._replace(layer=session.values()["layer"] - 1)  # as the model counts layers
    st.markdown(f"**{part_names.head_name(trace, focus)}**")
    gone = head_card.is_pruned(shown.view.checkpoint.card, numbered)
    card = head_results.card_of(shown, focus)
    st.markdown(head_card.PRUNED if gone else f"*In this sentence*: {card}")
    if survey:
        st.markdown(head_card.in_all_sentences(survey, numbered))
        panel.draw_importance()
    st.caption(
        _head_table.surveyed_on(over, shown == shown.as_trained)
        if over
        else "Match: 100% is a perfect example; 0% attends equally to all tokens (for “broad”: "
        f"to one token). From {percent(THRESHOLD)} on, a head has the pattern. "
        "Shares are means over rows with more than one key, without padding."
    )
    if exercise:
        frame.draw_exercise(exercise)
