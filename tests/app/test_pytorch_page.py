"""The matrices that the page PyTorch compares."""

import numpy as np
import pytest

from headlight.app import theme
from headlight.app.components.matrices import scales
from headlight.app.components.matrix import Matrix, compared


def rows_of_weights(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(4), 4)


def pictures(ours, theirs):
    return compared({"a": ours, "b": theirs}, "a − b", row_name="query", column_name="key")


def test_difference_is_symmetric_around_zero_and_bears_nan():
    ours, theirs = rows_of_weights(0), rows_of_weights(1)
    theirs[2] = np.nan
    first, second, difference = pictures(ours, theirs)
    assert (first.values is ours, second.values is theirs) == (True, True)
    assert np.array_equal(difference.values, ours - theirs, equal_nan=True)
    assert difference.largest == pytest.approx(np.nanmax(np.abs(ours - theirs)))
    weight, apart = scales(pictures(ours, theirs))
    assert (weight.name, weight.low, weight.high) == ("weight", "0", "1")
    assert apart.name == "difference" and apart.low == f"−{apart.high}"
    assert [one.labelled for one in pictures(ours, theirs)] == [True, False, False]


def test_weights_may_go_up_to_more_than_one():
    longest = Matrix("length", 3 * np.eye(2), "system", "after", weights=True, largest=3)
    (scale,) = scales([longest])
    assert (scale.low, scale.high, scale.palette) == ("0", "3", theme.INKED)


@pytest.mark.parametrize("missing", [False, True])
def test_a_scale_remains_where_nothing_differs(missing):
    same = np.full((4, 4), np.nan) if missing else rows_of_weights(0)
    assert pictures(same, same)[2].largest > 0
