"""An epoch of several sets: how much of each it holds, and what becomes of a pair."""

import random
from collections import Counter

import pytest

from headlight.model.training.data import DataError
from headlight.model.training.mixing import casual, check_shares, mixed
from headlight.model.training.tasks import Recipe

SETS = {
    "long": [(f"Caption {i}.", f"Bildtext {i}.") for i in range(40)],
    "short": [(f"Go {i}!", f"Geh {i}!") for i in range(30)],
}


def drawn(recipe, seed=1):
    return mixed(SETS, recipe, random.Random(seed))


def test_shares_are_passes():
    """Without one, each set is read once."""
    assert Counter(drawn(Recipe())) == Counter(SETS["long"] + SETS["short"])
    counts = Counter(drawn(Recipe(shares={"long": 0.5, "short": 2.0})))
    assert sum(counts[pair] for pair in SETS["long"]) == 20
    assert {counts[pair] for pair in SETS["long"]} == {0, 1}
    assert {counts[pair] for pair in SETS["short"]} == {2}


def test_another_epoch_reads_another_part_and_the_same_epoch_the_same():
    recipe = Recipe(shares={"long": 0.5}, joined=0.2, casual=0.2)
    assert drawn(recipe) == drawn(recipe)
    assert drawn(recipe, seed=1) != drawn(recipe, seed=2)


def test_joined_pairs_are_of_one_set_and_keep_their_sides():
    pairs = drawn(Recipe(joined=0.5))
    halves = [pair for pair in pairs if pair not in SETS["long"] + SETS["short"]]
    assert 20 < len(halves) < 50  # of 70
    for source, target in halves:
        (first, second), (erster, zweiter) = source.split(" ")[1::2], target.split(" ")[1::2]
        assert (first, second) == (erster, zweiter)
        assert source.split(" ")[0] == source.split(" ")[2]


def test_casual_pairs_lose_marks_on_both_sides_and_capitals_in_the_source():
    seen = {casual(("What time is it?", "Wie spät ist es?"), random.Random(i)) for i in range(50)}
    assert seen == {
        ("What time is it", "Wie spät ist es"),
        ("what time is it?", "Wie spät ist es?"),
        ("what time is it", "Wie spät ist es"),
    }


def test_casual_pairs_stay_pairs_and_a_mark_that_one_side_has_alone_stays():
    for pair in (("?", "!"), ("No", "Nein."), ("a ?", "b ?")):
        assert all(all(casual(pair, random.Random(seed))) for seed in range(20))
    seen = {casual(("No", "Nein."), random.Random(i)) for i in range(50)}
    assert {target for _, target in seen} == {"Nein."}


def test_a_share_of_no_set_is_refused():
    check_shares({"long": 1.0}, SETS)
    with pytest.raises(DataError, match=r"'medium'.*long, short"):
        check_shares({"medium": 1.0}, SETS)
