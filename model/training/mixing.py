"""The pairs of one epoch, sampled from several data sets."""

import random
from collections.abc import Mapping, Sequence

from headlight.model.training.data import DataError
from headlight.model.training.tasks import Example, Recipe

MARKS = ".!?"


def check_shares(shares: Mapping[str, float], sets: Mapping[str, Sequence[Example]]) -> None:
    """Raises DataError for a share of an unknown set."""
    for name in shares:
        if name not in sets:
            names = ", ".join(sets)
            raise DataError(f"There is no data set {name!r} to give a share to; there is {names}.")


def mixed(
    sets: Mapping[str, Sequence[Example]], recipe: Recipe, chance: random.Random
) -> list[Example]:
    """The pairs of an epoch: of each set as many passes as its share says, and of a pass that is
    not whole a random part. Some pairs are joined with another of their set (Kondo et al. 2021),
    so that a model of short sentences meets longer texts; some are typed casually."""
    sampled = []
    for name, pairs in sets.items():
        passes, part = divmod(recipe.shares.get(name, 1.0), 1)
        some = [*pairs] * int(passes) + chance.sample(pairs, round(part * len(pairs)))
        for pair in some:
            if chance.random() < recipe.joined:
                pair = joined(pair, chance.choice(pairs))
            if chance.random() < recipe.casual:
                pair = casual(pair, chance)
            sampled.append(pair)
    return sampled


def joined(first: Example, second: Example) -> Example:
    """Two pairs, one after the other."""
    source, target = (f"{a} {b}" for a, b in zip(first, second, strict=True))
    return source, target


def casual(pair: Example, chance: random.Random) -> Example:
    """A casually typed pair: without final punctuation on both sides, or with a lower-case first
    letter in the source, or both."""
    source, target = pair
    without_mark, small = chance.choice([(True, False), (False, True), (True, True)])
    if without_mark and source[-1] in MARKS and target[-1] in MARKS:
        source = source.rstrip(MARKS).rstrip() or source
        target = target.rstrip(MARKS).rstrip() or target
    if small:
        source = source[0].lower() + source[1:]
    return source, target
