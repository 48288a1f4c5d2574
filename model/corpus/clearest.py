"""The sentences in which a head does most what it is named for."""

from collections.abc import Sequence
from dataclasses import dataclass

from model.analysis.head_metrics import RULES, Measured, nearest_names
from model.corpus.head_counts import Counts, aligned, positional
from model.corpus.survey import ALIGNMENT, POSITIONAL, Survey


@dataclass(frozen=True)
class Habit:
    """What a head is named for: by which number of head_counts.py, and whether less of it is more
    of the habit."""

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
class Shown:
    """How much of its habit a head shows in a sentence, its place among those that were asked
    about; and what a uniform head would."""

    sentence: int
    value: float
    uniform: float


def clearest(
    counts: Sequence[Counts], habit: Habit, kind: str, layer: int, head: int
) -> list[Shown]:
    """Sentences by how far the head is beyond a uniform one, the clearest first; without those of
    too few rows. Layer and head of the arrays."""
    found = [
        Shown(i, *means)
        for i, one in enumerate(counts)
        if habit.number in one[kind] and (means := one[kind][habit.number].means(layer, head))
    ]
    sign = 1 if habit.less else -1
    return sorted(found, key=lambda shown: sign * (shown.value - shown.uniform))
