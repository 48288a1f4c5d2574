"""A table of all heads with their measures, from one sentence or from a survey with intervals."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from headlight.app.text.formats import escaped
from headlight.app.text.head_card import (
    INTERVAL,
    SHARES,
    P,
    head_numbers,
    why_measures_differ,
)
from headlight.app.text.part_names import layer_number
from headlight.model.analysis.head_metrics import Measured, nearest_names
from headlight.model.probing.trace import Pass
from headlight.model.surveys.survey import ALIGNMENT, IN_WORDS, POSITIONAL, SIGNIFICANT, Survey

RULED = {  # further shares of a survey → their names
    POSITIONAL: "one offset",
    ALIGNMENT: "aligned",
    "separators": "separators",
    "rare": "rarest token",
}
PERCENTAGES = (  # of head_table
    "nearest, match",
    "second, match",
    *SHARES.values(),
    *RULED.values(),
)
UNITS = {"entropy": "bits", "distance": "tokens"}
ABLATION_COLUMN = "ablation"


def head_table(
    measured: Mapping[str, Measured],
    trace: Pass,
    ablation: Mapping[str, np.ndarray] = MappingProxyType({}),
    survey: Survey | None = None,
) -> list[dict]:
    """One row for every head: its nearest pattern with its score, the effect of its ablation, kind
    → (layers, heads), its second pattern, and its numbers. Shares and scores are in percent;
    `trace` is any of the same model. Of a survey, which `measured` is then of, all numbers with
    their intervals."""
    rows = []
    for kind, numbers in measured.items():
        for layer, head in np.ndindex(numbers.rows["entropy"].shape):
            number = layer_number(trace, kind, layer)
            row = {"attention": kind, "layer": number, "head": head + 1}
            if survey:
                names = survey.names(kind, number - 1, head)
                row["named"] = ", ".join(named.name for named in names)
            nearest, second = _matches(numbers, layer, head)
            row |= nearest
            if kind in ablation:
                effect = float(ablation[kind][layer, head])
                row[ABLATION_COLUMN] = None if np.isnan(effect) else effect
            if survey:
                row |= _lost(survey, kind, number - 1, head)
            row |= second
            row |= (
                _surveyed(survey.head(kind, number - 1, head))
                if survey
                else _of_sentence(head_numbers(numbers, layer, head))
            )
            rows.append(row)
    return rows


def _matches(numbers: Measured, layer: int, head: int) -> list[dict]:
    """The nearest and the second pattern of a head, each with its score; empty where there is
    none."""
    matches = dict(zip(("nearest", "second"), nearest_names(numbers, layer, head), strict=False))
    return [
        {place: matches[place].name, f"{place}, match": 100 * matches[place].score}
        if place in matches
        else {}
        for place in ("nearest", "second")
    ]


def _of_sentence(known: Mapping[str, float]) -> dict:
    return {name: known.get(name) for name in UNITS} | {
        label: 100 * known[name] if name in known else None for name, label in SHARES.items()
    }


def _lost(survey: Survey, kind: str, layer: int, head: int) -> dict:
    """What a survey loses without a head, with its p."""
    known, row = survey.head(kind, layer, head), {}
    for name in filter(None, (survey.card["score"], "loss")):
        column = lost_name(name)
        row |= _with_interval(column, known.get(name)) | {column + P: known[name]["p_holm"]}
    return row


def _surveyed(known: Mapping[str, Mapping]) -> dict:
    """The measures of a head in a survey, with their intervals."""
    row = {}
    for name in UNITS:
        row |= _with_interval(name, known.get(name))
    for name, label in (RULED | SHARES).items():
        row |= _with_interval(label, known.get(name), 100)
    return row


def _with_interval(column: str, row: Mapping | None, scale: int = 1) -> dict:
    if row is None or row["value"] is None:
        return {column: None, column + INTERVAL: None}
    value, *ends = (row[name] for name in ("value", "low", "high"))
    return {
        column: scale * value,
        column + INTERVAL: None if None in ends else tuple(scale * end for end in ends),
    }


def lost_name(measure: str) -> str:
    """The column title for what is lost without a head."""
    return f"{ABLATION_COLUMN}, {IN_WORDS[measure].partition(', of')[0].removeprefix('the ')}"


def interval(ends: tuple[float, float] | None, digits: int) -> str:
    if ends is None:
        return ""
    low, high = (f"{round(end, digits) + 0:.{digits}f}".replace("-", "−") for end in ends)
    return f"{low} to {high}"


def digits_of(column: str, surveyed: bool) -> int:
    """The unit of the numbers in a column."""
    if column in PERCENTAGES:
        return 0
    if column in UNITS:
        return 2 if surveyed else 1
    return 3 if column == lost_name("loss") else 2


def is_signed(column: str) -> bool:
    """Whether the numbers of a column are changes, which can be negative."""
    return column.startswith(ABLATION_COLUMN) and not column.endswith(P)


def ablated(column: str) -> str:
    """An explanation of the ablation column."""
    if column == ABLATION_COLUMN:
        return "Change in the output's log-probability without the head."
    return "Change in the survey's metric without the head."


def sentences_explained(habit: str, most: int) -> str:
    """An explanation of how a head's sentences were chosen."""
    return (
        f"Your own lines (the first {most}) and the example sentences, ordered by how clearly "
        f"the head shows its pattern, “{habit}”. Click a sentence to use it on every page."
    )


def surveyed_on(survey: Survey, as_trained: bool) -> str:
    """What a survey was measured on."""
    change = "the metric" if survey.card["score"] else "the loss"
    lost = lost_name(survey.card["score"] or "loss")
    test = f" ({escaped(test)})" if (test := survey.card.get("test")) else ""
    changed = "" if as_trained else " Your current changes are not included."
    aligned = (
        "; an “alignment” head attends most to the source word that the model needs most."
        if survey.of(ALIGNMENT)
        else ""
    )
    return (
        f"Over {survey.card['sentences']:,} sentences ({escaped(survey.card['data'])}), with "
        f"95% intervals by bootstrap. **{lost}**: the change in {change} without the head. "
        f"p{test} is adjusted for all heads (Holm); above {SIGNIFICANT:.2f} the change is not "
        f"significant. {why_measures_differ(survey)} **nearest**: the pattern that "
        f"a head resembles most. **named**: by the rules of Voita et "
        f"al. and Clark et al.{aligned}{changed}"
    )
