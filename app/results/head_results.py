"""Heads: measures, changes, surveys, and one head step by step."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from headlight.app.components.packing import (
    PackedPredictions,
    answers_of,
    as_sent,
    pack_trace,
)
from headlight.app.results.memoize import (
    cached,
    memoize,
    memoize_pass,
    threads,
    token_count,
)
from headlight.app.results.shown import Shown
from headlight.app.state import catalog
from headlight.app.state.catalog import ModelView
from headlight.app.state.progress import reporting
from headlight.app.text import formats, head_card
from headlight.model.analysis import head_metrics
from headlight.model.analysis.reading import Reading
from headlight.model.checkpoint import SHIPPED, parameters_sha256
from headlight.model.pause import pause
from headlight.model.pretrained.weights import CannotLoad
from headlight.model.probing.head_steps import HeadSteps, compared, head_steps
from headlight.model.probing.run import FINAL, Run
from headlight.model.probing.sites import Place
from headlight.model.probing.trace import read_of
from headlight.model.sites import Site
from headlight.model.surveys.clearest import ClearExample, Habit, clearest
from headlight.model.surveys.head_counts import RARE, Counts, frequencies, head_counts
from headlight.model.surveys.importance import Example
from headlight.model.surveys.survey import FILE, Survey

ROW_BYTES = 1_000  # of a row's predictions, roughly


@cached(lambda found: ROW_BYTES * len(found.rows) if found else 0)
def predictions_of(shown: Shown) -> PackedPredictions | None:
    """The predictions of a run in words, if it has any."""
    return answers_of(shown.trace, shown.view.checkpoint.outputs)


def packed_of(shown: Shown) -> bytes:
    """The weights of all heads as the browser draws them."""

    def make():
        answers, attention = predictions_of(shown), shown.attention
        return pack_trace(shown.trace, Reading(), answers, attention=attention)

    return memoize_pass(shown, ("packed",), make, len)


@cached(len)
def card_of(shown: Shown, place: Place) -> str:
    """One head in words; see head_card.card."""
    survey, *_ = survey_of(shown.view)
    words = shown.trace.row_words(*place)
    matches = {}
    if survey:
        measured = surveyed_of(shown, survey)[place.kind]
        matches = head_card.surveyed_matches(survey, measured, place.layer, place.head)
    return head_card.card(shown.trace, place.kind, shown.head(place), words, matches)


@cached()
def measured_of(shown: Shown) -> dict[str, head_metrics.Measured]:
    """Measures of all heads."""

    traced = shown.trace
    with reporting("Measuring the heads"):
        return head_metrics.measured(traced, shown.attention)


def measured_over(view: ModelView, runs: Sequence[Run]) -> dict[str, head_metrics.Measured]:
    """Measures of all heads, over several runs of one model."""

    def make():
        longest = max(map(token_count, runs), default=0)
        with (
            threads(view.model, longest),
            reporting("Measuring the heads on the example sentences"),
        ):
            each = []
            for run in runs:
                pause(len(each), len(runs))
                each.append(head_metrics.measured(Shown(view, run).trace))
            return {
                kind: head_metrics.over_sentences([measured[kind] for measured in each])
                for kind in (each[0] if each else ())
            }

    key = "measured over", view.device, view.stamp, tuple(runs)
    return memoize(key, make)


def survey_of(view: ModelView) -> tuple[Survey | None, str, bool]:
    """The survey in the folder of a model, or None; then why there is none, as Markdown, and
    whether that is a file's fault."""
    folder = catalog.folders().get(view.name)
    if view.checkpoint.lacks:
        return None, "", False
    if folder is None:
        return None, "Its weights are random, so there is no survey.", False
    if view.step != FINAL:
        return (
            None,
            f"A survey uses the final weights, not those of training step {view.step}.",
            False,
        )
    try:
        changed = (folder / FILE).stat().st_mtime_ns
    except OSError:  # missing or unreadable: `_survey` gives the reason
        changed = 0
    return _survey(view, view.name, folder, changed)


@st.cache_resource(max_entries=16, show_spinner=False)
def _survey(_view: ModelView, name: str, folder, changed: int) -> tuple[Survey | None, str, bool]:
    """survey_of for a file last modified at `changed`."""
    again = f"`headlight survey {name if folder.parent == SHIPPED else folder}`"
    try:
        survey = Survey.load(folder)
    except CannotLoad as error:
        return None, f"{formats.escaped(str(error))} {again} makes a new one.", True
    except Exception as error:  # the file may hold anything
        why = formats.escaped(" ".join(str(error).split())[:300] or type(error).__name__)
        where = formats.escaped(str(folder / FILE))
        return None, f"{where} cannot be read: {why}. {again} makes a new one.", True
    if survey is None:
        return (
            None,
            (
                f"This model has no survey yet. {again} makes one from the validation data of its "
                "task, or with `--file sentences.tsv` from your own. Each line is a source, or "
                "source and target with a tab in between."
            ),
            False,
        )
    same = survey.card["parameters"] == parameters_sha256(_view.model)
    if same and survey.covers(_view.model.sites()):
        return survey, "", False
    of = "other heads" if same else "other weights"
    return None, f"The survey in this model's folder was made with {of}. Run {again} again.", True


@cached()
def surveyed_of(shown: Shown, survey: Survey) -> dict[str, head_metrics.Measured]:
    """Measures of all heads, over the sentences of a survey."""
    return survey.measured(shown.trace.sites)


def clearest_in(
    view: ModelView, runs: Sequence[Run], habit: Habit, place: Place
) -> list[ClearExample]:
    """The runs in which a head shows most clearly what it is named for, the clearest first. Raises
    CannotRead."""
    texts = [[list(text.ids) for text in read_of(view.model, run).values()] for run in runs]
    examples = [Example(i, "", tuple(ids), None, None) for i, ids in enumerate(texts, start=1)]
    frequency = frequencies(examples)

    def counts(run: Run, example: Example) -> Counts:
        def make():
            # alignment takes one pass per token
            aligned = example.number if habit.needs_alignment else 0
            (counted,) = head_counts(view.checkpoint, [example], frequency, aligned)
            return counted

        # How rare a token is depends on all runs.
        key = "counts", habit.needs_alignment, habit.number == RARE and tuple(runs)
        return memoize_pass(Shown(view, run), key, make)

    with reporting("Measuring the heads on each sentence"):
        each = [counts(*both) for both in zip(runs, examples, strict=True)]
    return clearest(each, habit, *place)


def opening_row(shown: Shown, place: Place) -> int:
    """The row of a head that is shown until another is chosen: the one that Attention marks, with
    the masks as trained, so that it stays while they are switched; else the second."""
    plain, kind = shown.as_trained, place.kind
    trace, weights = plain.trace, plain.head(place)
    keys = trace.texts_of(kind)[1].tokens
    row = head_metrics.most_telling_row(as_sent(weights), trace.row_words(*place), keys)
    return min(1, len(weights) - 1) if row is None else row


def head_steps_of(shown: Shown, site: Site, head: int) -> HeadSteps:
    """One head step by step."""

    def make():
        return head_steps(shown.view.model, shown.run, site, head, shown.given)

    return memoize_pass(shown, ("inside", site, head), make, lambda result: result.nbytes)


@cached(lambda pair: sum(array.nbytes for array in pair))
def compared_of(shown: Shown, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys of a kind as they enter the scores. Raises CannotChange."""
    return compared(shown.view.model, shown.run, kind, shown.given)
