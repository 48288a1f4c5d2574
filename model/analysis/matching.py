"""Matches the tokens of two texts."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

UNMATCHED = -1  # marks a token without a counterpart


def counterparts(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    """For each token of `first` the position of its counterpart in `second`, or UNMATCHED,
    (token,).

    Tokens of the longest common subsequence match. Between two of these, tokens match in order if
    both texts have equally many: “man” and “woman” in a minimal pair."""
    anchors = [(-1, -1), *_common(first, second), (len(first), len(second))]
    places = np.full(len(first), UNMATCHED)
    for (i, j), (next_i, next_j) in pairwise(anchors):
        if i >= 0:
            places[i] = j
        if next_i - i == next_j - j:
            places[i + 1 : next_i] = range(j + 1, next_j)
    return places


def _common(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """Positions of a longest common subsequence in both texts."""
    ids = {token: number for number, token in enumerate(dict.fromkeys((*first, *second)))}
    rows, columns = (
        np.array([ids[token] for token in text], dtype=int) for text in (first, second)
    )
    longest = np.zeros((len(rows) + 1, len(columns) + 1), dtype=int)  # of what is left of both
    for i in reversed(range(len(rows))):
        with_it = np.where(rows[i] == columns, longest[i + 1, 1:] + 1, longest[i + 1, :-1])
        longest[i, :-1] = np.maximum.accumulate(with_it[::-1])[::-1]
    matches, i, j = [], 0, 0
    while i < len(rows) and j < len(columns):
        if rows[i] == columns[j]:
            matches.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1, j] >= longest[i, j + 1]:
            i += 1
        else:
            j += 1
    return matches
