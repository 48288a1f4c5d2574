"""What `make check` runs is near to what changed, and fits into its time."""

import random

import pytest

from tests import check
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("file", "nearest"),
    [
        ("model/masks.py", "tests/model/test_masks.py"),
        ("app/components/head_grid/index.js", "tests/browser/test_head_grid.py"),
        ("tests/app/test_heads_page.py", "tests/app/test_heads_page.py"),
    ],
)
def test_the_nearest_are_those_of_its_name(file, nearest):
    distances = check.distances([file])
    assert distances[nearest] == 0 == min(distances.values())
    assert (check.EVERY_PAGE in distances) or not file.startswith("app/")
    assert all((ROOT / test).is_file() for test in distances)


def test_they_fit_into_the_time_the_nearest_first():
    chance = random.Random(0)
    seconds = {str(test): chance.uniform(1, 30) for test in range(20)}
    nearest = {test: chance.randrange(4) for test in seconds}
    chosen, rest = check.within(60, nearest, seconds)
    assert {*chosen, *rest} == {*seconds} and len(chosen) + len(rest) == len(seconds)
    assert sum(seconds[test] for test in chosen) <= 60
    for test in rest:  # it did not fit beside those that are nearer
        before = sum(seconds[one] for one in chosen if nearest[one] <= nearest[test])
        assert before + seconds[test] > 60
