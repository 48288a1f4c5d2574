"""Statistics that NumPy does not have: correlations of ranks, the bootstrap and tests by chance."""

from collections.abc import Callable

import numpy as np

BLOCK = 512  # exchanges that are in memory at once
ROUNDING = 1e-10  # by which two equal differences may differ


def ranks(values: np.ndarray) -> np.ndarray:
    """From 1 for the smallest; equal values share the mean of their ranks."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[which]


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's ρ, from -1 to 1; NaN where one of both has no order."""
    x, y = (r - r.mean() for r in (ranks(x), ranks(y)))
    both = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / both) if both else np.nan


def resamples(n: int, count: int, seed: int = 0) -> np.ndarray:
    """The bootstrap: how often each of n sentences is drawn in each of `count` samples of n,
    (sample, sentence). Sums over samples are a product with it."""
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=count).astype(float)


def interval(draws: np.ndarray, share: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of the middle `share` of bootstrap samples, (sample, ..) → (..) twice; NaN where
    there are no values."""
    low, high = np.quantile(draws, [(1 - share) / 2, (1 + share) / 2], axis=0)
    return low, high


def randomisation_test(
    plain: np.ndarray,
    others: np.ndarray,
    score: Callable[[np.ndarray], np.ndarray],
    exchanges: int,
    seed: int = 0,
) -> np.ndarray:
    """Two-sided p-values, (part,), of paired approximate randomisation (Noreen 1989): if a part has
    no effect, what a sentence gives with and without it may be exchanged. Of so many random
    exchanges, how many change the score as much. plain: (sentence, statistic); others: (part,
    sentence, statistic); `score` makes scores of sums, (.., statistic) → (..).

    Unlike a p-value from the bootstrap it holds at any level, however small, which is what many
    parts need; none is below 1 / (exchanges + 1)."""
    n_parts, n_sentences, n_statistics = others.shape
    differences = (others - plain).swapaxes(0, 1).reshape(n_sentences, -1)
    plain_sums, sums = plain.sum(axis=0), others.sum(axis=1)
    least = np.abs(score(sums) - score(plain_sums)) - ROUNDING
    chance, extreme = np.random.default_rng(seed), np.zeros(n_parts, dtype=int)
    for start in range(0, exchanges, BLOCK):
        size = min(BLOCK, exchanges - start), n_sentences
        exchanged = chance.integers(2, size=size, dtype=np.int8).astype(float)
        moved = (exchanged @ differences).reshape(-1, n_parts, n_statistics)
        extreme += (np.abs(score(sums - moved) - score(plain_sums + moved)) >= least).sum(axis=0)
    return (extreme + 1) / (exchanges + 1)


def holm(p: np.ndarray) -> np.ndarray:
    """p-values of one family, adjusted to control the family-wise error rate (Holm 1979)."""
    order = np.argsort(p, kind="stable")
    steps = (len(p) - np.arange(len(p))) * p[order]
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted
