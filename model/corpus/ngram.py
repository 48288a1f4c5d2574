"""An n-gram language model as a baseline for a Transformer, with interpolated Kneser–Ney smoothing
(Kneser and Ney 1995; as in Chen and Goodman 1999, section 3, with one discount an order).
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

NOTHING = (0, 0.0)  # a context that does not occur in the training text


class KneserNey:
    """Probabilities of the next token from the `order` − 1 tokens before it.

    Texts are token ids between <s>, which is never predicted, and </s>. The highest order counts
    n-grams; every lower order counts the different tokens that an n-gram follows, so a token that
    follows one token alone counts little. The lowest order backs off to a uniform distribution over
    the vocabulary.
    """

    def __init__(self, texts: Iterable[Sequence[int]], order: int, vocab_size: int):
        self.order, self.vocab_size = order, vocab_size
        # counts[n] has the n-grams; where a text begins, shorter ones stand for longer ones.
        counts: list[Counter] = [Counter() for _ in range(order + 1)]
        for text in texts:
            for i in range(1, len(text)):
                for n in range(1, order + 1):
                    if i + 1 - n >= 0:
                        counts[n][tuple(text[i + 1 - n : i + 1])] += 1
        self.discounts, self.counts, self.contexts = [0.0], [Counter()], [{}]
        for n in range(1, order + 1):
            if n < order:  # how many different tokens stand before it, or that it begins a text
                before = Counter(gram[1:] for gram in counts[n + 1])
                of_order = Counter({gram: before[gram] or counts[n][gram] for gram in counts[n]})
            else:
                of_order = counts[n]
            self.counts.append(of_order)
            once, twice = (sum(count == k for count in of_order.values()) for k in (1, 2))
            self.discounts.append(once / (once + 2 * twice) if once else 0.5)
            totals, different = Counter(), Counter()
            for gram, count in of_order.items():
                totals[gram[:-1]] += count
                different[gram[:-1]] += 1
            self.contexts.append({c: (totals[c], different[c]) for c in totals})

    def probability(self, token: int, before: Sequence[int]) -> float:
        """The probability of `token` after the tokens `before`."""
        probability = 1 / self.vocab_size
        for n in range(1, min(self.order, len(before) + 1) + 1):
            context = tuple(before[len(before) + 1 - n :])
            total, different = self.contexts[n].get(context, NOTHING)
            if not total:
                break  # longer contexts are unseen, too
            discount = self.discounts[n]
            count = self.counts[n][*context, token]
            lower = discount * different / total * probability
            probability = max(count - discount, 0) / total + lower
        return probability

    def loss_per_token(self, texts: Iterable[Sequence[int]]) -> float:
        """Mean −log p of every token but the first of each text, in nats."""
        losses = [
            -math.log(self.probability(text[i], text[max(0, i + 1 - self.order) : i]))
            for text in texts
            for i in range(1, len(text))
        ]
        return sum(losses) / len(losses)
