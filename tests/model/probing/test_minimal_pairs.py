"""Activation patching on pairs of sentences that differ in one word: is a contrast carried by the
same heads from pair to pair?"""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from headlight.model import load
from headlight.model.probing.run import Run
from headlight.model.probing.sweeps import Score, heads_patched, sweep

pytestmark = pytest.mark.long
SCENES = (
    "is riding a bike.", "is sitting on a bench.", "is playing guitar.", "is reading a book.",
    "is walking down the street.", "is standing in front of a building.", "is eating an apple.",
    "is jumping into the water.", "is cooking in a kitchen.", "is running on the beach.",
    "is holding a dog.", "is talking on the phone.", "is sleeping on a couch.",
    "is climbing a rock.", "is painting a wall.", "is wearing a hat.", "is crossing the street.",
    "is working on a computer.", "is singing on a stage.", "is taking a picture.",
    "is looking at the camera.", "is sitting in a car.", "is playing in the snow.",
    "is driving a boat.",
)  # fmt: skip
PLURALS = {"dog": "dogs", "man": "men", "woman": "women", "boy": "boys", "girl": "girls"}
CONTRASTS = {
    "man, woman": [(f"A man {scene}", f"A woman {scene}") for scene in SCENES],
    "one, two": [
        (f"One {one} {verb}s {where}.", f"Two {many} {verb} {where}.")
        for (one, many), verb, where in itertools.product(
            PLURALS.items(), ("run", "sit", "walk"), ("on the grass", "in the snow")
        )
    ],
    "red, blue": [
        (f"A man in a red {what} {scene}", f"A man in a blue {what} {scene}")
        for what, scene in itertools.product(("shirt", "jacket", "hat", "car"), SCENES[:8])
    ],
}
TELLING, RANDOM = 0.25, 0.05  # shares of the difference of logits


def restored(en_de, one: str, other: str) -> np.ndarray:
    """Read the other sentence and write what the first one is translated to, up to where the two
    translations part. Which share of the difference of the two words' logits comes back with each
    head from the first sentence?"""
    first, second = (en_de.translate(text).ids for text in (one, other))
    place = next(i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    target = en_de.tokenizer.encoding(first[:place])
    clean, corrupt = (Run((en_de.tokenizer.encode(text), target)) for text in (one, other))
    score = Score(place, first[place], second[place])
    patched, changes = replace(corrupt, other=clean), heads_patched(en_de.model)
    found = sweep(en_de.model, patched, changes, score, en_de.given(patched))
    return found.effects / (sweep(en_de.model, clean, [], score).score - found.score)


@pytest.mark.parametrize("contrast", CONTRASTS)
def test_the_head_found_on_one_half_is_found_on_the_other(contrast, record_property):
    en_de = load("en-de")
    shares = np.array([restored(en_de, *pair) for pair in CONTRASTS[contrast]])
    assert len(shares) >= 20
    shares = shares[np.random.default_rng(0).permutation(len(shares))]
    first, second = np.array_split(shares, 2)
    best = first.mean(axis=0).argmax()
    among = ((second > second[:, [best]]).sum(axis=1) < 3).mean()
    median = float(np.median(second[:, best]))
    others = float(np.median(np.delete(second, best, axis=1)))
    name = heads_patched(en_de.model)[best][0].scope
    print(
        f"{contrast}: {name} in the top three {among:.0%}, restores {median:.1%}, else {others:.1%}"
    )
    assert among >= 0.8
    assert abs(others) <= RANDOM < median
    if median < TELLING:
        pytest.xfail(f"one head restores {median:.1%}: several heads share the work")
