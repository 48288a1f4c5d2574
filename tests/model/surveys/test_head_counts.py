"""Counts of patterns, against loops over rows."""

from collections import Counter

import numpy as np
import pytest

from headlight.model.analysis import alignment
from headlight.model.analysis.head_metrics import measured
from headlight.model.surveys.head_counts import (
    OFFSETS,
    RARE,
    SEPARATORS,
    aligned,
    frequencies,
    head_counts,
    patterns,
    positional,
)
from headlight.model.surveys.importance import examples_of
from headlight.model.surveys.sentences import Line
from headlight.model.tokenizer import Encoding
from tests.model.common import load

KEY = Encoding((5, 9, 5, 7, 2), ("a", ",", "a", "b", "</s>"), ((0, 1),) * 4 + ((0, 0),))
FREQUENCY = Counter({5: 30, 9: 80, 7: 2, 2: 100})


def weights_of(causal: bool):
    chance = np.random.default_rng(0)
    weights = chance.dirichlet(np.full(5, 0.3), size=(2, 3, 5))
    if causal:
        weights = np.tril(weights)
        weights /= weights.sum(axis=-1, keepdims=True)
    return weights


@pytest.mark.parametrize("causal", [False, True])
def test_patterns_row_by_row(causal):
    weights = weights_of(causal)
    found = patterns(weights, KEY, FREQUENCY)
    for layer, head in np.ndindex(2, 3):
        expected = Counter()
        for i, row in enumerate(weights[layer, head]):
            keys = [j for j in range(5) if not causal or j <= i]
            top = max(keys, key=lambda j: row[j])
            fewest = min((FREQUENCY[KEY.ids[j]] for j in keys if j != 4), default=None)
            such = {positional(o): [j for j in keys if j - i == o] for o in OFFSETS}
            such[SEPARATORS] = [j for j in keys if j in (1, 4)]
            such[RARE] = [j for j in keys if j != 4 and FREQUENCY[KEY.ids[j]] == fewest]
            for name, some in such.items():
                if 0 < len(some) < len(keys):
                    share = sum(row[some]) if name == SEPARATORS else float(top in some)
                    expected[name, "total"] += share
                    expected[name, "uniform"] += len(some) / len(keys)
                    expected[name, "rows"] += 1
        for name, one in found.items():
            for part in ("total", "uniform", "rows"):
                value = getattr(one, part)[layer, head]
                assert value == pytest.approx(expected[name, part], abs=1e-6), (name, part)
    assert found[positional(-1)].rows.max() == (3 if causal else 4) + causal  # rows 2 to 5


def test_metrics_and_alignment_are_those_of_one_sentence():
    en_de = load("en-de")
    lines = [Line(1, "A dog runs on the beach.", None), Line(2, "Two men", "Zwei Männer")]
    examples = examples_of(en_de, lines)
    first, second = head_counts(en_de, examples, frequencies(examples), 1)
    trace = en_de.trace("A dog runs on the beach.")
    for kind, one in measured(trace).items():
        for name, number in one.numbers.items():
            rows = np.maximum(one.rows[name], 1)
            assert np.abs(first[kind][name].total / rows - number).max() <= 1e-6
            assert np.array_equal(first[kind][name].rows, one.rows[name])
    run = en_de.run("A dog runs on the beach.")
    expected = alignment.measured(
        [alignment.of_trace(trace)], [alignment.of_influence(en_de.model, run)]
    )
    for shift in alignment.SHIFTS:
        one = first["cross"][aligned(shift)]
        assert np.abs(one.total / one.rows - expected.agreement[shift]).max() <= 1e-4
        assert not second["cross"][aligned(shift)].rows.any()  # beyond those asked for
