"""Aligned words of source and target, as lines between them."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from headlight.app import selection
from headlight.app.components.colour_key import LINE_SWATCH, POINTED, colour_key, weight_scale
from headlight.app.components.word_lines import word_lines
from headlight.app.results import head_results, word_results
from headlight.app.results.shown import Shown
from headlight.app.shell import frame, running_lesson
from headlight.app.state import messages, session, widgets
from headlight.app.state.options import (
    AT_ROWS,
    INFLUENCE,
    OF_LAYER,
    SELECTED,
)
from headlight.app.text import alignment, part_names
from headlight.app.text.formats import listed
from headlight.app.views._word_links import dashed, links_before
from headlight.model.analysis.alignment import GOLD, HeadAlignment, WordWeights, aligning_kind
from headlight.model.probing.run import Run
from headlight.model.rounding import percent
from headlight.model.sites import Site
from headlight.model.surveys.alignments import Aligned, csv_lines, pharaoh_lines
from headlight.model.surveys.survey import ALIGNMENT, IN_WORDS, Survey

TABLE = "alignment_table"
HEIGHT = 240  # pixels
BARE = {"label_visibility": "collapsed", "width": 160}
AGREEMENT = "agreement"


def page() -> None:
    shown = selection.shown()
    view, run = shown.view, shown.run
    trace = shown.trace
    kind = aligning_kind(trace.sites, trace.sides.values())
    if kind is None:
        st.info("No head attends from one text to another, so there is nothing to align.")
        raise messages.NothingToShow
    measured = word_results.alignment_of(shown)
    if measured is None:
        st.info("There are no words to align.")
        raise messages.NothingToShow
    sites, focus, shift = trace.kinds[kind], session.focus(), None
    with frame.controls():
        by = widgets.draw("aligned_by", widget_options=BARE)
        if by != INFLUENCE:
            at = widgets.draw("aligned_at", widget_options=BARE)
            shift = None if at == AT_ROWS[0] else AT_ROWS.index(at) - 1
    if by in (SELECTED, OF_LAYER) and focus.kind != kind:
        st.info(
            f"Select a head of {part_names.kind_name(trace, kind)}: only those connect both texts."
        )
        raise messages.NothingToShow
    heads = {
        INFLUENCE: [],
        SELECTED: [(focus.layer, focus.head)],
        OF_LAYER: [(focus.layer, head) for head in range(sites[focus.layer].n_heads)],
    }.get(by, measured.heads)

    def words_of(of_run: Run) -> WordWeights:
        """The word weights that the settings choose, for a run."""
        run_view = selection.view(of_run)
        if by == INFLUENCE:
            return word_results.influence_of(Shown(run_view, of_run)).shares()
        return measured.of(word_results.word_weights_of(Shown(run_view, of_run)), heads, shift)

    words = words_of(run)
    source, target = (side.title.capitalize() for side in trace.sides.values())
    before = links_before(run, words, words_of, WordWeights.links)
    note = alignment.alignment_note(measured, heads, sites, shift)
    colour_key(LINE_SWATCH, POINTED, weight_scale(session.palette()))
    word_lines(
        words,
        (source, target),
        (words.links(), before),
        note + dashed(before - words.links()),
        session.palette(),
    )
    aligned = [Aligned(1, words)]
    name = f"{run.checkpoint}-alignment"
    with frame.numbers():
        files = st.container(horizontal=True)
    for label, ending, lines in (("Pharaoh", "txt", pharaoh_lines), ("CSV", "csv", csv_lines)):
        files.download_button(
            label,
            "".join(lines(aligned)),
            f"{name}.{ending}",
            on_click="ignore",
            icon=":material/download:",
        )

    if view.checkpoint.lacks:
        return  # how well heads align takes a model to find out

    known = measured == view.checkpoint.alignment
    survey, *_ = head_results.survey_of(view)
    alike = survey if known and measured.by != GOLD else None
    rows = [
        {
            "layer": site.layer + 1,
            "head": head + 1,
            "aligns": alignment.SHIFT_NAMES[measured.shifts[layer, head]],
            AGREEMENT: 100 * agreement(measured, alike, site, (layer, head)),
            "best set": (layer, head) in map(tuple, measured.heads),
            "settings": dict(kind=kind, layer=site.layer + 1, head=head + 1, aligned_by=SELECTED),
        }
        for layer, site in enumerate(sites)
        for head in range(site.n_heads)
    ]
    rows.sort(key=lambda row: -row[AGREEMENT])
    small = st.column_config.NumberColumn(width="small")
    percent = st.column_config.NumberColumn(format="%.0f%%")
    settings = [row["settings"] for row in rows]
    widgets.select_row(TABLE, widgets.current_row(settings))
    st.dataframe(
        pd.DataFrame(rows).drop(columns="settings"),
        key=TABLE,
        hide_index=True,
        height=HEIGHT,
        on_select=widgets.row_callback(TABLE, settings),
        selection_mode=widgets.ROW_OR_CELL,
        column_config={"layer": small, "head": small, AGREEMENT: percent},
        alt="How well each head aligns words",
    )
    frame.explain(alignment_explained(measured, sites, known))
    are_named = 1 < len(heads) <= alignment.MOST_NAMED
    if survey and are_named and not running_lesson.veils():
        frame.explanation().caption(without_them(survey, heads, sites))


def without_them(survey: Survey, heads: Sequence[tuple[int, int]], sites) -> str:
    """What a survey measured without each of some heads of these sites. Empty unless it has all."""
    measure, losses, needed = survey.measure, [], []
    for index, head in heads:
        site = sites[index]
        row = survey.head(site.kind, site.layer, head).get(measure)
        if row is None:
            return ""
        digits = 3 if measure == "loss" else 2
        by, low, high = (f"{row[name]:+.{digits}f}" for name in ("value", "low", "high"))
        name = f"{site.layer + 1}.{head + 1}"
        losses.append(f"{by} without {name} ({low} to {high})")
        if survey.needed(site.kind, site.layer, head):
            needed.append(name)
    which = listed(needed) if needed else "none of them"
    verdict = f"{which} {'are' if len(needed) > 1 else 'is'} needed, whatever takes its place"
    name = IN_WORDS[measure]
    return (
        f"*Are these heads important?* Over {survey.card['sentences']:,} sentences, "
        f"{verdict}. Change in {name} (95% interval): {listed(losses)}."
    ).replace("-", "−")


def agreement(
    measured: HeadAlignment, survey: Survey | None, site: Site, at: tuple[int, int]
) -> float:
    """How often a head, `at` layer and head of the arrays, links a target word to the right source
    word: over the sentences of the survey, as on every page that says it, or else as `measured`."""
    layer, head = at
    surveyed = survey.head(site.kind, site.layer, head).get(ALIGNMENT) if survey else None
    return surveyed["value"] if surveyed else measured.agreement[measured.shifts[at]][layer][head]


def alignment_explained(measured: HeadAlignment, sites, known: bool) -> str:
    """How the heads were measured and chosen: if `known`, on many sentences, or else on this
    one."""
    heads = listed(
        [f"layer {sites[layer].layer + 1} head {head + 1}" for layer, head in measured.heads]
    )
    where = (
        "in other sentences"
        if known
        else "in this sentence, because none were chosen on other sentences"
    )
    right = (
        "one that a person linked"
        if measured.by == GOLD
        else "the one that the model needs most to predict the target word"
    )
    return (
        "A row of the decoder has just read one token and predicts the next. Some heads align "
        "the token just read, others the one predicted; the table shows which. **Agreement**: "
        f"how often the source word with the largest weight is {right}. Best set: {heads}, which "
        f"agree on {percent(measured.together)} of {measured.words:,} target words {where}. Click "
        "a row to show that head alone, and choose “Best heads” to return."
    )
