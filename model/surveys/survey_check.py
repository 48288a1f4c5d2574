"""Whether a file that anyone may have written is a survey: its columns, rows and card."""

import math
from collections.abc import Iterable, Mapping

from headlight.model.analysis.baselines import BEYOND, REPLACEMENTS
from headlight.model.analysis.head_metrics import EXACT_PATTERNS
from headlight.model.analysis.head_metrics import RULES as PATTERNS

LONGEST_TEXT = 300  # characters of the card
LARGEST = 1e6  # of any number
ROUNDING = 1e-6
PLACES = {  # part → the columns that say which
    "model": (),
    "layer": ("kind", "layer"),
    "sublayer": ("kind", "layer"),
    "head": ("kind", "layer", "head"),
}
METRICS = {"entropy"} | {pattern.number for pattern in PATTERNS.values()}
NO_SHARES = {"entropy", "distance"}  # metrics above 1
DISTANCE = PATTERNS["local"].number


def check_card(card: object, scores: Iterable[str]) -> None:
    """Raises ValueError, with what is wrong."""
    if not isinstance(card, dict):
        raise ValueError("its card is missing")
    for name in ("score", "parameters", "data"):
        text = card.get(name)
        if not isinstance(text, str) or len(text) > LONGEST_TEXT:
            raise ValueError(f"the “{name}” of its card is missing, or not a short text")
    if not isinstance(card.get("test", ""), str) or len(card.get("test", "")) > LONGEST_TEXT:
        raise ValueError("the “test” of its card is not a short text")
    if card["score"] and card["score"] not in scores:
        raise ValueError(
            f"the “score” of its card is “{card['score'][:40]}” and not one of {', '.join(scores)}"
        )
    count = card.get("sentences")
    if type(count) is not int or not 1 <= count <= LARGEST:
        raise ValueError("the “sentences” of its card are not a number")


def check_rows(rows: Iterable[Mapping], card: Mapping, named: Mapping[str, object]) -> None:
    """Of rows whose columns have the right types. `named`: the measures of patterns that heads are
    named by, beside METRICS → whether their column `at` says which. Raises ValueError, with what is
    wrong."""
    changes = {"loss", card["score"]} - {""}
    seen: dict[tuple, set[str]] = {}  # part and its place → measures
    for number, row in enumerate(rows, start=1):
        place = (row["part"], *(row[name] for name in PLACES.get(row["part"], ())))
        measures = seen.setdefault(place, set())
        fault = _fault(row, card["sentences"], changes, named)
        if not fault and row["measure"] in measures:
            fault = f"“{row['measure']}” occurs twice"
        if fault:
            raise ValueError(f"in its row {number}, {fault}")
        measures.add(row["measure"])
    heads = {place[1:]: measures for place, measures in seen.items() if place[0] == "head"}
    if not heads:
        raise ValueError("it has no rows of heads")
    of_kind: dict[str, set[str]] = {}
    for (kind, layer, head), measures in heads.items():
        of_kind.setdefault(kind, set()).update(measures)
        if missing := changes - measures:
            raise ValueError(f"{kind} {layer}.{head} has no row of “{min(missing)}”")
    exact = {PATTERNS[name].number for name in EXACT_PATTERNS}
    for kind, measures in of_kind.items():
        if DISTANCE not in measures or not exact & measures:
            raise ValueError(f"the rows of what {kind} heads attend to are missing")


def _fault(row: Mapping, sentences: int, changes: set[str], named: Mapping[str, object]) -> str:
    """What is wrong with a row, "" where nothing is."""
    part, measure = row["part"], row["measure"]
    metric = part == "head" and (measure in METRICS or measure in named)
    if part not in PLACES:
        return "the part is not part of a model"
    if not measure or len(measure) > LONGEST_TEXT or len(row["kind"] or "") > LONGEST_TEXT:
        return "the measure or kind is not a short text"
    needed = ["value", "low", "high", "sentences", *PLACES[part]]
    needed += ["uniform", "rows"] * metric
    tested = changes | {BEYOND.format(name) for name in REPLACEMENTS}
    needed += ["p_holm"] * (part != "model" and measure in tested)
    needed += ["at"] * bool(metric and named.get(measure))
    for name in needed:
        if row[name] is None:
            return f"there is no “{name}”"
    for name, value in row.items():
        if isinstance(value, (int, float)) and not (math.isfinite(value) and abs(value) <= LARGEST):
            return f"“{name}” is not a finite number, or too large"
    if any(row[name] is not None and row[name] < 1 for name in ("layer", "head")):
        return "layers and heads count from 1"
    if not 1 <= row["sentences"] <= sentences or (metric and row["rows"] < 1):
        return "“sentences” or “rows” are too few or too many"
    if row["low"] > row["high"]:
        return "“low” is above “high”"
    if not all(0 <= (row[name] or 0) <= 1 for name in ("p", "p_holm")):
        return "a p-value is not between 0 and 1"
    most = math.inf if measure in NO_SHARES else 1
    shares = [row[name] for name in ("value", "low", "high", "uniform")] if metric else []
    if not all(-ROUNDING <= share <= most + ROUNDING for share in shares):
        return f"“{measure}” is below 0" + " or above 1" * (most == 1)
    if None in (row["best"] or ()):
        return "“best” is not a list of numbers"
    return ""
