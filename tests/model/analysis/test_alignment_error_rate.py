"""How well the heads of en-de align, against a statistical aligner that learned from the same
data: eflomal in both directions, joined by grow-diag-final-and. `pytest -s` prints the table."""

import os
from pathlib import Path

import numpy as np
import pytest

from headlight.model import load
from headlight.model.analysis import alignment
from headlight.model.analysis.alignment import SHIFTS, diagonal, error_rate, of_influence, of_trace
from headlight.model.checkpoint import Checkpoint
from headlight.model.training import tasks

DATA = os.environ.get("HEADLIGHT_DATA")
TEST = "test_2016_flickr"  # 1,000 captions
FEW = 200  # sentences for what takes a pass for every source token

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def pairs():
    if not DATA:
        pytest.skip("HEADLIGHT_DATA does not name the folder that holds the data sets")
    task = tasks.multi30k(Path(DATA) / "multi30k")
    return task.tests()[TEST], task.examples()["train"]


def words_of(checkpoint: Checkpoint, texts) -> list[str]:
    """Texts with a space between the words that WordWeights counts; in lower case."""
    lines = []
    for text in texts:
        words = alignment.ordinary_words(checkpoint.tokenizer.encode(text))
        lines.append(" ".join(word.replace(" ", "") for _, word in words).lower())
    return lines


@pytest.fixture(scope="module")
def gold(pairs, tmp_path_factory):
    eflomal = pytest.importorskip("eflomal")
    grow = pytest.importorskip("nltk.translate.gdfa").grow_diag_final_and
    test, train = pairs
    source, target = (words_of(load("en-de"), side) for side in zip(*train, *test, strict=True))
    files = [str(tmp_path_factory.mktemp("eflomal") / name) for name in ("forward", "reverse")]
    eflomal.Aligner().align(
        source, target, links_filename_fwd=files[0], links_filename_rev=files[1]
    )
    both = [Path(file).read_text().splitlines()[-len(test) :] for file in files]
    return [
        frozenset(map(tuple, grow(len(s.split()), len(t.split()), forward, reverse)))
        for s, t, forward, reverse in zip(
            source[-len(test) :], target[-len(test) :], *both, strict=True
        )
    ]


def test_the_chosen_heads_align_as_well_as_any(pairs, gold):
    en_de = load("en-de")
    test, _ = pairs
    found = [of_trace(en_de.trace(*pair)) for pair in test]
    layers, heads = found[0].weights.shape[1:3]
    rates = np.array(
        [
            [
                [
                    error_rate(
                        [en_de.alignment.of(w, [(i, j)], shift).links() for w in found], gold
                    )
                    for j in range(heads)
                ]
                for i in range(layers)
            ]
            for shift in SHIFTS
        ]
    )
    chosen = error_rate([en_de.alignment.of(words).links() for words in found], gold)
    baseline = error_rate([diagonal(len(w.source), len(w.target)) for w in found], gold)
    runs = [en_de.run(*pair) for pair in test[:FEW]]
    influence = error_rate([of_influence(en_de.model, run).links() for run in runs], gold[:FEW])
    for shift, name in enumerate(("read", "predicted")):
        print(f"\nAER, word that is {name}: a row a layer\n{(100 * rates[shift]).round(1)}")
    print(
        f"best set {chosen:.1%}, best head {rates.min():.1%}, diagonal {baseline:.1%}, "
        f"influence ({FEW} sentences) {influence:.1%}"
    )
    assert chosen <= rates.min() < baseline
    # The shifts were measured without gold alignments; for heads that align they are right.
    aligning = rates.min(axis=0) < baseline
    assert (rates.argmin(axis=0) == en_de.alignment.shifts)[aligning].all()
