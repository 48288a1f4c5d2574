"""A table of all heads with their measures, from one sentence or from a survey with intervals."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd

from headlight.app.charts import Points
from headlight.app.text import exercises
from headlight.app.text.exercises import Exercise
from headlight.app.text.formats import escaped
from headlight.app.text.head_card import (
    INTERVAL,
    SHARES,
    P,
    head_numbers,
    why_measures_differ,
)
from headlight.app.text.part_names import layer_number
from headlight.model.analysis.head_metrics import (
    ANY,
    THRESHOLD,
    Measured,
    heads_with,
    nearest_heads,
    nearest_names,
)
from headlight.model.probing.trace import Pass
from headlight.model.rounding import percent
from headlight.model.surveys.survey import ALIGNMENT, IN_WORDS, POSITIONAL, SIGNIFICANT, Survey
from headlight.model.surveys.survey import SURVEY_RULES as NAMING

SCORE = "match"  # the column for the pattern that filters the table
RULED = {  # further shares of a survey → their names
    POSITIONAL: "one offset",
    ALIGNMENT: "aligned",
    "separators": "separators",
    "rare": "rarest token",
}
PERCENTAGES = (  # of head_table
    SCORE,
    "nearest, match",
    "second, match",
    *SHARES.values(),
    *RULED.values(),
)
UNITS = {"entropy": "bits", "distance": "tokens"}
NEAREST = 3  # heads listed where none has the pattern
ABLATION_COLUMN = "ablation"


def head_table(
    measured: Mapping[str, Measured],
    trace: Pass,
    pictures: Mapping[str, Sequence[Sequence[str]]],
    pattern: str = ANY,
    ablation: Mapping[str, np.ndarray] = MappingProxyType({}),
    survey: Survey | None = None,
) -> list[dict]:
    """One row for every head: its nearest pattern with its score, the effect of its ablation, kind
    → (layers, heads), its picture, its second pattern, and its numbers. Of one pattern the heads
    that have it, or else those nearest to it, with the score first and the best on top. Shares and
    scores are in percent; `trace` is any of the same model. Of a survey, which `measured` is then
    of, all numbers with their intervals."""
    rows, matching = [], heads_with(measured, ANY if pattern == ALIGNMENT else pattern)
    if not any(matching.values()):
        matching = nearest_heads(measured, pattern, NEAREST)
    for kind, heads in matching.items():
        numbers = measured[kind]
        for layer, head in heads:
            number = layer_number(trace, kind, layer)
            row = {"attention": kind, "layer": number, "head": head + 1}
            if pattern == ALIGNMENT:
                share = survey and survey.head(kind, number - 1, head).get(pattern)
                if not share:
                    continue
                row[SCORE] = 100 * share["value"]
            elif pattern != ANY:
                row[SCORE] = 100 * float(numbers.scores[pattern][layer, head])
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
            row |= {"weights": pictures[kind][layer][head]} | second
            if survey:
                row |= _surveyed(survey.head(kind, number - 1, head))
            else:
                row |= _of_sentence(head_numbers(numbers, layer, head))
            rows.append(row)
    rows.sort(key=lambda row: -row.get(SCORE, 0))
    if pattern == ALIGNMENT:
        return [row for row in rows if row[SCORE] >= 100 * least(pattern)] or rows[:NEAREST]
    return rows


def least(pattern: str) -> float:
    """The score from which on a head has a pattern."""
    return NAMING[pattern].least if pattern == ALIGNMENT else THRESHOLD


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


def numbers_of(rows: Sequence[Mapping]) -> list[str]:
    """The columns with comparable numbers, ablation first."""
    names = dict.fromkeys(
        name
        for row in rows
        for name, value in row.items()
        if isinstance(value, float) and not name.endswith(P)
    )
    return sorted(names, key=lambda name: not name.startswith(ABLATION_COLUMN))


def on_focus(rows: Sequence[Mapping], depths: Mapping[str, int]) -> Exercise | None:
    """`depths`: kind → number of layers. None where no head has an entropy."""
    heads = [
        (row["attention"], row["layer"], row["head"], row["entropy"])
        for row in rows
        if row.get("entropy") is not None
    ]
    focused = sorted(heads, key=lambda head: head[-1])[:NEAREST]
    return exercises.most_focused(focused, depths) if focused else None


def on_focus_and_loss(rows: Sequence[Mapping]) -> Exercise | None:
    """None where it is not known what changes without a head."""
    effects = [name for name in numbers_of(rows) if is_signed(name)]
    if not effects or "entropy" not in rows[0]:
        return None
    name = max(effects, key=lambda name: "loss" in name)  # the finer measure
    both = pd.DataFrame([(row.get("entropy"), row.get(name)) for row in rows]).dropna()
    ranks = both.abs().rank()
    if len(ranks) < 3 or not ranks.std().all():
        return None
    correlation = float(ranks.corr().to_numpy()[0, 1])
    return exercises.focus_and_loss(correlation, len(ranks))


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


def none_matches(rows: Sequence[Mapping], pattern: str) -> str:
    """Said of the heads nearest to a pattern, if none has it; empty if one does."""
    if pattern == ANY or not rows or rows[0][SCORE] >= 100 * least(pattern):
        return ""
    best = rows[0]
    return (
        f"No head reaches {percent(least(pattern))} for “{pattern}”. Nearest: {best['attention']} "
        f"{best['layer']}.{best['head']}, with {percent(best[SCORE] / 100)}."
    )


def is_signed(column: str) -> bool:
    """Whether the numbers of a column are changes, which can be negative."""
    return column.startswith(ABLATION_COLUMN) and not column.endswith(P)


def ablated(column: str) -> str:
    """An explanation of the ablation column."""
    if column == ABLATION_COLUMN:
        return "Change in the output's log-probability without the head."
    return "Change in the survey's metric without the head."


def points(rows: Sequence[Mapping], across: str, up: str) -> dict[str, Points]:
    """Kind → its heads as points, from two columns of the table; heads without a number are
    omitted."""
    by_kind: dict[str, list] = {}
    for number, row in enumerate(rows):
        if row.get(across) is None or row.get(up) is None:
            continue
        name = f"{row['attention']} {row['layer']}.{row['head']}"
        sides = [
            (row[column], *(row.get(column + INTERVAL) or (row[column],) * 2))
            for column in (across, up)
        ]
        by_kind.setdefault(row["attention"], []).append((name, number, *sides))
    return {
        kind: Points(names, numbers, np.array(x).T, np.array(y).T)
        for kind, heads in by_kind.items()
        for names, numbers, x, y in [zip(*heads, strict=True)]
    }


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
