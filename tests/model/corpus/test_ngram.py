"""The n-gram model: probabilities sum to 1, and are those of the formula."""

import math
from collections import Counter
from itertools import pairwise

import pytest

from headlight.model.corpus.ngram import KneserNey

TEXTS = [[0, 4, 5, 6, 1], [0, 4, 5, 7, 1], [0, 4, 6, 5, 1], [0, 7, 5, 6, 1], [0, 4, 5, 1]]
VOCABULARY = 9


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "before", [[0], [0, 4], [0, 4, 5], [0, 8], [0, 4, 8], [0, 7, 5, 6], [3, 5]]
)
def test_probabilities_sum_to_one(order, before):
    model = KneserNey(TEXTS, order, VOCABULARY)
    probabilities = [model.probability(token, before) for token in range(VOCABULARY)]
    assert sum(probabilities) == pytest.approx(1)
    assert min(probabilities) > 0


def test_bigrams_by_the_formula():
    """max(c(vw) − D, 0) / c(v·) + D N(v·) / c(v·) · P(w), where P counts what w follows."""
    bigrams = Counter(pair for text in TEXTS for pair in pairwise(text))
    follows = Counter(w for _, w in bigrams)

    def discount(counts):
        once, twice = (list(counts.values()).count(k) for k in (1, 2))
        return once / (once + 2 * twice)

    def single(w):
        d = discount(follows)
        return (max(follows[w] - d, 0) + d * len(follows) / VOCABULARY) / sum(follows.values())

    model, d = KneserNey(TEXTS, 2, VOCABULARY), discount(bigrams)
    for v in (0, 4, 5, 6, 7):
        after = {w: count for (first, w), count in bigrams.items() if first == v}
        total = sum(after.values())
        for w in range(VOCABULARY):
            expected = max(after.get(w, 0) - d, 0) / total + d * len(after) / total * single(w)
            assert model.probability(w, [0, v]) == pytest.approx(expected)


def test_the_highest_order_counts_and_lower_ones_count_contexts():
    """San Francisco: a token that follows one token alone is improbable behind any other."""
    texts = [[0, 2, 3, 1]] * 20 + [[0, a, 4, 1] for a in range(5, 15)]
    model = KneserNey(texts, 2, 16)
    assert model.probability(3, [0, 2]) > 0.8
    assert model.probability(3, [0, 15]) < model.probability(4, [0, 15])


def test_loss_is_the_mean_over_all_tokens_but_the_first():
    model = KneserNey(TEXTS, 3, VOCABULARY)
    text = [0, 4, 5, 6, 1]
    each = [-math.log(model.probability(text[i], text[:i])) for i in range(1, 5)]
    assert model.loss_per_token([text]) == pytest.approx(sum(each) / 4)
    assert model.loss_per_token([text, [0, 1]]) == pytest.approx(
        (sum(each) - math.log(model.probability(1, [0]))) / 5
    )
