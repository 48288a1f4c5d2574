import numpy as np
import pandas as pd
import pytest

from headlight.model.analysis.statistics import ranks, spearman


def samples():
    chance = np.random.default_rng(0)
    for n in (2, 5, 30):
        yield chance.normal(size=n), chance.normal(size=n)
        yield chance.integers(0, 4, n), chance.integers(0, 3, n)  # ties


def test_rank_correlations_are_those_of_their_definitions():
    for x, y in samples():
        expected = pd.DataFrame({"x": x, "y": y}).corr(method="spearman").iloc[0, 1]
        assert spearman(x, y) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_ties_share_their_ranks_and_no_order_is_no_number():
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1, 3.5, 2]
    four = np.arange(4)
    assert np.isnan(spearman(np.ones(4), four))
    assert spearman(four, four**3) == 1 == -spearman(four, -four)
