import itertools

import numpy as np
import pandas as pd
import pytest

from headlight.model.analysis.statistics import kendall, ranks, spearman


def samples():
    chance = np.random.default_rng(0)
    for n in (2, 5, 30):
        yield chance.normal(size=n), chance.normal(size=n)
        yield chance.integers(0, 4, n), chance.integers(0, 3, n)  # ties


def test_rank_correlations_are_those_of_their_definitions():
    for x, y in samples():
        expected = pd.DataFrame({"x": x, "y": y}).corr(method="spearman").iloc[0, 1]
        assert spearman(x, y) == pytest.approx(expected, abs=1e-12, nan_ok=True)
        pairs = list(itertools.combinations(range(len(x)), 2))
        a, b = ([np.sign(float(v[i] - v[j])) for i, j in pairs] for v in (x, y))
        both = (sum(map(abs, a)) * sum(map(abs, b))) ** 0.5
        tau = sum(i * j for i, j in zip(a, b, strict=True)) / both if both else np.nan
        assert kendall(x, y) == pytest.approx(tau, abs=1e-12, nan_ok=True)


def test_ties_share_their_ranks_and_no_order_is_no_number():
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1, 3.5, 2]
    for measure in (spearman, kendall):
        assert np.isnan(measure(np.ones(4), np.arange(4)))
        assert (
            measure(np.arange(4), np.arange(4) ** 3) == 1 == -measure(np.arange(4), -np.arange(4))
        )
