"""Word alignments: against loops over tokens, against passes by hand, and where one can foresee
them."""

import numpy as np
import pytest

from model import load
from model.analysis import alignment
from model.analysis.alignment import PREDICTED, READ, SHIFTS, of_attention, of_influence
from model.analysis.reading import words

TEXT = "A Huntsman's dog runs on the beach."


@pytest.mark.parametrize("shift", SHIFTS)
def test_attention_between_words_is_that_of_their_tokens(shift):
    trace = load("en-de").trace(TEXT)
    found = of_attention(trace, shift)
    spans = [
        [(group, name) for group, name in zip(*words(text), strict=True) if text.ids[group[0]] > 2]
        for text in (trace.tgt, trace.src)
    ]
    rows, columns = spans
    assert found.target == tuple(name for _, name in rows)
    assert found.source == tuple(name for _, name in columns) and "dog" in found.source
    weights = trace.attention["cross"]
    for i, ((start, stop), _) in enumerate(rows):
        for j, ((first, last), _) in enumerate(columns):
            cells = weights[:, :, start - shift : stop - shift, first:last]
            expected = cells.sum(axis=-1).mean(axis=-1)
            assert np.abs(found.weights[:, :, i, j] - expected).max() <= 1e-6


@pytest.mark.parametrize("letters", ["abcdefgh", "world", "zyx"])
def test_reverse_depends_on_the_mirror_of_each_letter(letters):
    reverse = load("reverse")
    found = of_influence(reverse.model, reverse.run(" ".join(letters)))
    assert found.source == tuple(letters) == found.target[::-1]
    n = len(letters)
    assert found.links() == {(n - 1 - i, i) for i in range(n)}


def test_influence_is_what_a_pass_without_the_token_loses():
    en_de = load("en-de")
    run = en_de.run("A dog runs.")
    found = of_influence(en_de.model, run)
    target = en_de.tokenizer.decode(run.texts[1].ids)

    def log_shares(line):
        logits = en_de.trace("A dog runs.", target, changes=line).logits.astype(float)
        logits -= logits.max(axis=-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))

    plain, without = log_shares(""), log_shares("encoder=hide:2; cross=hide:2")
    ids = run.texts[1].ids
    lost = [plain[i, token] - without[i, token] for i, token in enumerate(ids)]
    assert len(found.target) == len(ids)  # each word is a token here
    assert np.abs(found.weights[:, found.source.index("dog")] - lost).max() <= 1e-4
    assert found.links() >= {(found.source.index("dog"), found.target.index("Hund"))}


def test_some_heads_align_what_is_read_and_others_what_is_predicted():
    """By what the words depend on: head 2 of layer 1 one way, head 3 of layer 4 the other."""
    en_de = load("en-de")
    text = "A young boy runs on the beach."
    trace, needed = en_de.trace(text), of_influence(en_de.model, en_de.run(text)).links()

    def agreement(shift, layer, head):
        best = of_attention(trace, shift).weights[layer, head].argmax(axis=-1)
        return np.mean([(int(j), i) in needed for i, j in enumerate(best)])

    for (layer, head), shift in {(0, 1): READ, (3, 2): PREDICTED}.items():
        assert agreement(shift, layer, head) >= 0.7
        assert agreement(1 - shift, layer, head) <= 0.2


def test_pharaoh_error_rate_and_diagonal():
    assert alignment.pharaoh(frozenset({(1, 0), (0, 2), (0, 0)})) == "0-0 0-2 1-0"
    gold = [frozenset({(0, 0), (1, 1)}), frozenset({(0, 0)})]
    assert alignment.error_rate(gold, gold) == 0
    assert alignment.error_rate([frozenset(), frozenset()], gold) == 1
    assert alignment.error_rate([frozenset({(0, 0)}), frozenset({(0, 0)})], gold) == (
        pytest.approx(1 - 4 / 5)
    )
    assert alignment.diagonal(4, 4) == {(i, i) for i in range(4)}
    assert alignment.diagonal(2, 4) == {(0, 0), (0, 1), (1, 2), (1, 3)}
    assert alignment.diagonal(0, 3) == frozenset()
