"""Counterparts of tokens: a longest common subsequence, found here by trying all of them."""

import random
from itertools import combinations

import numpy as np
import pytest

from headlight.model.analysis.matching import UNMATCHED, counterparts


def longest_common(one, two) -> int:
    def occurs(part, text):
        rest = iter(text)
        return all(token in rest for token in part)

    sizes = range(min(len(one), len(two)), -1, -1)
    return next(n for n in sizes if any(occurs(part, two) for part in combinations(one, n)))


@pytest.mark.parametrize("seed", range(40))
def test_they_are_in_order_and_as_many_as_can_be(seed):
    draw = random.Random(seed)
    one, two = ("".join(draw.choices("abc", k=draw.randrange(9))) for _ in range(2))
    places = counterparts(one, two)
    known = places[places != UNMATCHED]
    assert (np.diff(known) > 0).all()
    same = sum(one[i] == two[j] for i, j in enumerate(places) if j != UNMATCHED)
    assert same == longest_common(one, two)


def test_what_stands_between_two_common_tokens_goes_in_turn_where_both_have_as_many():
    one, two = (["a", "man", "is", "here"], ["a", "woman", "is", "here"])
    assert counterparts(one, two).tolist() == [0, 1, 2, 3]
    assert counterparts(one, ["a", "tall", "woman", "is", "here"]).tolist() == [0, UNMATCHED, 3, 4]
    assert (
        counterparts([], two).tolist() == [] and counterparts(one, []).tolist() == [UNMATCHED] * 4
    )
    assert counterparts(["x", "y"], ["u", "v"]).tolist() == [0, 1]
