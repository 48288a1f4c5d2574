"""The sentences in which a head does most what it is named for."""

import numpy as np
import pytest

from headlight.model.analysis.head_metrics import RULES, Measured, measured
from headlight.model.surveys.clearest import Habit, clearest, nearest_habit, surveyed_habit
from headlight.model.surveys.head_counts import FEWEST_ROWS, frequencies, head_counts
from headlight.model.surveys.importance import examples_of
from headlight.model.surveys.sentences import Line
from headlight.model.surveys.survey import Survey
from tests.model.common import CHECKPOINTS, load

TEXTS = [
    "A dog runs.",
    "Two men in red shirts are sitting on a bench.",
    "Go",
    "A girl and a boy and a dog and a cat are walking along the street.",
]


@pytest.fixture(scope="module")
def counted():
    checkpoint = load("en-de")
    lines = [Line(i, text) for i, text in enumerate(TEXTS, start=1)]
    examples = examples_of(checkpoint, lines)
    return checkpoint, head_counts(checkpoint, examples, frequencies(examples), len(lines))


def test_sentences_stand_in_the_order_of_the_pattern(counted):
    """By the metrics of each sentence's trace by itself."""
    checkpoint, counts = counted
    alone = [measured(checkpoint.trace(text))["encoder"] for text in TEXTS]
    for habit in (Habit("previous token", "previous"), Habit("local", "distance", less=True)):
        beyond = {
            i: (-1 if habit.less else 1)
            * float(one.numbers[habit.number][2, 3] - one.uniform[habit.number][2, 3])
            for i, one in enumerate(alone)
            if one.rows[habit.number][2, 3] >= FEWEST_ROWS
        }
        found = clearest(counts, habit, "encoder", 2, 3)
        assert [one.sentence for one in found] == sorted(beyond, key=beyond.get, reverse=True)
        assert 2 not in beyond and len(beyond) == 3
        for one in found:
            at = alone[one.sentence]
            assert one.value == pytest.approx(at.numbers[habit.number][2, 3], abs=1e-6)
            assert one.uniform == pytest.approx(at.uniform[habit.number][2, 3], abs=1e-6)


def test_what_a_head_is_named_for():
    en_de, copy = (
        Survey.load(next(path for path in CHECKPOINTS if path.name == name))
        for name in ("en-de", "copy")
    )
    assert surveyed_habit(en_de, "encoder", 2, 3) == Habit("previous token", "previous")
    aligning = surveyed_habit(en_de, "cross", 2, 1)
    assert aligning.name == "alignment" and aligning.needs_alignment
    assert surveyed_habit(copy, "cross", 0, 0) == Habit("positional +0", "positional +0")
    assert surveyed_habit(en_de, "encoder", 0, 0) is None


def test_less_distance_is_more_local():
    def one(distance):
        numbers = {name: np.zeros((1, 1)) for rule in RULES.values() for name in [rule.number]}
        uniform = {name: np.full((1, 1), 0.5) for name in numbers} | {
            "distance": np.full((1, 1), 6.0)
        }
        numbers |= {"distance": np.full((1, 1), distance)}
        return Measured(numbers, uniform, {name: np.full((1, 1), 9) for name in numbers})

    nothing = measured(load("copy").trace("", ""))["encoder"]  # too few rows are no pattern
    assert nearest_habit(nothing, 0, 0) is None
    assert nearest_habit(one(0.5), 0, 0) == Habit("local", "distance", less=True)
    assert not nearest_habit(one(0.5), 0, 0).is_share
