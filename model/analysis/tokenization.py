"""What a BPE tokenizer does with one pre-token, merge by merge (Sennrich et al. 2016). The library
gives a text's tokens; this file shows how they arise.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from headlight.model.tokenizer import Tokenizer


@dataclass(frozen=True)
class Merge:
    """Two neighbouring symbols become one. rank: 0 is the merge learned first; at: the index of the
    new symbol in `symbols`, the symbols after the merge."""

    rank: int
    pair: tuple[str, str]
    at: int
    symbols: tuple[str, ...]


def merges(tokenizer: Tokenizer, word: str) -> Iterator[Merge]:
    """The merges of a pre-token in their order: always the pair of the lowest rank, the leftmost
    of equals, until no pair has one."""
    symbols = list(tokenizer.first_symbols(word))

    def rank(pair: tuple[str, str]) -> float:
        return tokenizer.merges[pair][0] if pair in tokenizer.merges else inf

    ranks = [rank(pair) for pair in pairwise(symbols)]
    while ranks and (lowest := min(ranks)) < inf:
        at = ranks.index(lowest)
        pair = symbols[at], symbols[at + 1]
        symbols[at : at + 2] = [tokenizer.merges[pair][1]]
        del ranks[at]
        for left in (at - 1, at):
            if 0 <= left < len(ranks):
                ranks[left] = rank((symbols[left], symbols[left + 1]))
        yield Merge(int(lowest), pair, at, tuple(symbols))
