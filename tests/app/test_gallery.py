"""The gallery of heads: what is drawn against the survey and the weights that it comes from."""

import numpy as np
import pandas as pd
import pytest

from headlight.app.results.gallery import gallery_heads, gallery_options
from headlight.model import load
from headlight.model.analysis.head_metrics import HABITS, measured, nearest_names
from headlight.model.checkpoint import SHIPPED
from headlight.model.surveys.survey import Survey

SENTENCE = "She has never seen the red car of my sister."


@pytest.fixture(scope="module", params=["en-fr", "induction"])
def surveyed(request):
    """The heads of a model with its survey, and the survey's file: measure → (kind, layer, head),
    from 1 → row."""
    checkpoint, survey = load(request.param), Survey.load(SHIPPED / request.param)
    trace = checkpoint.trace(SENTENCE if request.param == "en-fr" else "a b c a b")
    heads = gallery_heads(survey.measured(trace.sites), trace, survey, {"decoder": [2]})
    file = pd.read_parquet(SHIPPED / request.param / "survey.parquet")
    rows = file[file.part == "head"].set_index(["kind", "layer", "head"])
    return heads, survey, {measure: of for measure, of in rows.groupby("measure", observed=True)}


def place(head):
    return head.kind, head.number, head.head + 1


def test_every_head_stands_once_by_what_is_lost_without_it(surveyed):
    heads, survey, rows = surveyed
    losses = rows["loss"].value
    assert {place(head) for head in heads} == {*losses.index} and len(heads) == len(losses)
    assert [losses[place(head)] for head in heads] == sorted(losses, reverse=True)
    for head in heads:
        assert head.bar == pytest.approx(max(losses[place(head)], 0) / losses.max())
        assert f"{abs(losses[place(head)]):.3f}" in head.lost
        assert head.off == (place(head) == ("decoder", 1, 3))
    options = gallery_options(heads, ["decoder"], ("decoder", 0, 0), survey, "", True, "heads")
    assert {habit for habit, *_ in options.habits} == {head.habit for head in heads}


def test_red_is_only_what_costs_more_than_chance_whatever_takes_its_place(surveyed):
    heads, survey, rows = surveyed
    of, wanted = rows[survey.measure], {place(head) for head in heads}
    for name in ("zero", "mean", "resample"):
        beyond = rows[f"{name} − random"]
        wanted &= {*beyond[(beyond.value > 0) & (beyond.p_holm <= 0.05)].index}
    assert {place(head) for head in heads if head.missed} == wanted and wanted
    for head in heads:
        said = "".join(text for text, _ in head.finding)
        assert said.endswith("not significant.") == (of.p_holm[place(head)] > 0.05), said


def test_what_aligns_half_of_the_words_is_in_its_group_and_says_so(surveyed):
    heads, _, rows = surveyed
    aligned = rows["alignment"].value.to_dict() if "alignment" in rows else {}
    for head in heads:
        share = aligned.get(place(head), 0)
        assert head.habit == "align" or share < 0.5
        if head.habit == "align":
            assert head.caption == f"aligns {share:.0%}"


def test_of_one_sentence_groups_are_those_of_the_nearest_pattern_and_there_are_no_bars():
    trace = load("en-fr").trace(SENTENCE)
    numbers = measured(trace)
    heads = gallery_heads(numbers, trace)
    scores = []
    for head in heads:
        nearest, *_ = nearest_names(numbers[head.kind], head.layer, head.head)
        family = {name for name, patterns in HABITS.items() if nearest.name in patterns}
        between = nearest.name == "same token" and head.kind == "cross"
        assert {head.habit} == ({"align"} if between else family if nearest.score >= 0.2 else {""})
        assert head.bar is None and not head.lost and not head.missed
        scores.append(nearest.score if head.habit else 0)
    assert scores == sorted(scores, reverse=True) and len(heads) == 48
    previous = next(head for head in heads if place(head) == ("encoder", 2, 4))
    weights = trace.attention["encoder"][1, 3]
    assert previous.caption == f"previous {np.diagonal(weights, -1).mean():.0%}"
