"""Which token of one text stands for which of another."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

NONE = -1  # in the place of a token's counterpart


def counterparts(one: Sequence[str], two: Sequence[str]) -> np.ndarray:
    """For each token of `one` the place of its counterpart in `two`, or NONE, (token,).

    Those of their longest common subsequence belong together; so do, between two of these, the
    tokens in turn where both texts have as many: “man” and “woman” in a minimal pair."""
    anchors = [(-1, -1), *_common(one, two), (len(one), len(two))]
    places = np.full(len(one), NONE)
    for (i, j), (next_i, next_j) in pairwise(anchors):
        if i >= 0:
            places[i] = j
        if next_i - i == next_j - j:
            places[i + 1 : next_i] = range(j + 1, next_j)
    return places


def _common(one: Sequence[str], two: Sequence[str]) -> list[tuple[int, int]]:
    """The places in both of a longest common subsequence."""
    ids = {token: number for number, token in enumerate(dict.fromkeys((*one, *two)))}
    rows, columns = (np.array([ids[token] for token in text], dtype=int) for text in (one, two))
    longest = np.zeros((len(rows) + 1, len(columns) + 1), dtype=int)  # of what is left of both
    for i in reversed(range(len(rows))):
        with_it = np.where(rows[i] == columns, longest[i + 1, 1:] + 1, longest[i + 1, :-1])
        longest[i, :-1] = np.maximum.accumulate(with_it[::-1])[::-1]
    found, i, j = [], 0, 0
    while i < len(rows) and j < len(columns):
        if rows[i] == columns[j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1, j] >= longest[i, j + 1]:
            i += 1
        else:
            j += 1
    return found
