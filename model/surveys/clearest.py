"""The sentences in which a head shows most clearly what it is named for."""

from collections.abc import Sequence
from dataclasses import dataclass

from headlight.model.analysis.head_metrics import RULES, Measured, nearest_names
from headlight.model.surveys.head_counts import Counts, aligned, positional
from headlight.model.surveys.survey import ALIGNMENT, POSITIONAL, Survey


@dataclass(frozen=True)
class Habit:
    """What a head is named for: a measure of head_counts.py, and whether smaller values count."""

    name: str
    number: str
    less: bool = False

    @property
    def is_share(self) -> bool:
        """Of weight or of rows; else tokens."""
        return self.number != "distance"

    @property
    def needs_alignment(self) -> bool:
        return self.number.startswith(ALIGNMENT)


def surveyed_habit(survey: Survey, kind: str, layer: int, head: int) -> Habit | None:
    """The first name that a survey gives a head; layer and head from 0."""
    counted = {POSITIONAL: positional, ALIGNMENT: aligned}
    for named in survey.names(kind, layer, head):
        measure = named.row["measure"]
        number = counted[measure](named.row["at"]) if measure in counted else measure
        offset = f" {named.row['at']:+d}" if measure == POSITIONAL else ""
        return Habit(named.name + offset, number)
    return None


def nearest_habit(measured: Measured, layer: int, head: int) -> Habit | None:
    """The pattern that a head is nearest to; layer and head of the arrays."""
    for match in nearest_names(measured, layer, head, count=1):
        rule = RULES[match.name]
        return Habit(match.name, rule.number, less=rule.one == 0)
    return None


@dataclass(frozen=True)
class ClearExample:
    """How clearly a head shows its pattern in a sentence, given by its index, and the value of a
    uniform head."""

    sentence: int
    value: float
    uniform: float


def clearest(
    counts: Sequence[Counts], habit: Habit, kind: str, layer: int, head: int
) -> list[ClearExample]:
    """Sentences by distance from a uniform head, the clearest first, without those with too few
    rows. Layer and head index the arrays."""
    examples = [
        ClearExample(i, *means)
        for i, count in enumerate(counts)
        if habit.number in count[kind] and (means := count[kind][habit.number].means(layer, head))
    ]
    sign = 1 if habit.less else -1
    return sorted(examples, key=lambda shown: sign * (shown.value - shown.uniform))
