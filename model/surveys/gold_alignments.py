"""How well heads align words, against alignments by hand, and which heads do it best by these.

A file of gold alignments holds an object a line, in JSON: `src_words` and `tgt_words`, lists of
words, and `alignment`, pairs of their numbers from 0, source first.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headlight.model.analysis import alignment
from headlight.model.analysis.alignment import GOLD, HeadAlignment, Links, WordWeights
from headlight.model.analysis.statistics import interval, resamples
from headlight.model.checkpoint import Checkpoint
from headlight.model.probing.trace import CannotRead, read_of
from headlight.model.tokenizer import Encoding
from headlight.model.training.data import DataError, read_lines

SAMPLES = 10_000  # of the bootstrap
Choose = Callable[[WordWeights], WordWeights]


@dataclass(frozen=True)
class GoldPair:
    """A sentence and its translation as words, and which of them a person linked; `number` is its
    line, from 1."""

    number: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    links: Links

    def turned(self) -> "GoldPair":
        """From the translation to the sentence."""
        return GoldPair(self.number, self.target, self.source, turned(self.links))


@dataclass(frozen=True)
class PairWeights:
    """What a model has of a gold pair, between words of its tokenizer.

    attention         by `alignment.of_attention`
    influence         by `alignment.of_influence`
    sources, targets  of each of these words, in which word of the pair it stands
    """

    gold: GoldPair
    attention: WordWeights
    influence: WordWeights
    sources: np.ndarray
    targets: np.ndarray

    @property
    def right(self) -> np.ndarray:
        """(target word, source word): whether a person linked the words that they stand in."""
        linked = np.zeros((len(self.gold.target), len(self.gold.source)), dtype=bool)
        for source, target in self.gold.links:
            linked[target, source] = True
        return linked[np.ix_(self.targets, self.sources)]

    def links(self, words: WordWeights) -> Links:
        """Between words of the pair."""
        return frozenset((int(self.sources[i]), int(self.targets[j])) for i, j in words.links())


def read_gold(path: Path) -> list[GoldPair]:
    """Raises DataError."""
    pairs = []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            words = [row[name] for name in ("src_words", "tgt_words")]
            if not all(type(one) is list and one and all(map(_is_word, one)) for one in words):
                raise ValueError
            source, target = map(tuple, words)
            links = frozenset((i, j) for i, j in row["alignment"])
            if not all(i in range(len(source)) and j in range(len(target)) for i, j in links):
                raise ValueError
        except (ValueError, TypeError, KeyError, RecursionError):
            raise DataError(
                f"{path}, line {number:,}: a line of gold alignments is "
                '{"src_words": […], "tgt_words": […], "alignment": [[0, 0], …]}, with numbers of '
                "words from 0."
            ) from None
        pairs.append(GoldPair(number, source, target, links))
    return pairs


def _is_word(value: object) -> bool:
    return isinstance(value, str) and value.strip() == value != ""


def weights_of(checkpoint: Checkpoint, pair: GoldPair) -> PairWeights:
    """Raises DataError for a pair that the model cannot read."""
    try:
        run = checkpoint.run(" ".join(pair.source), " ".join(pair.target))
        attention = alignment.of_trace(checkpoint.trace_run(run))
        influence = alignment.of_influence(checkpoint.model, run, checkpoint.given(run))
    except CannotRead as error:
        raise DataError(f"Line {pair.number:,}: {error}") from None
    texts = read_of(checkpoint.model, run)
    sides = (side.name for side in checkpoint.model.sides())
    places = [
        places_of(texts[side], words)
        for side, words in zip(sides, (pair.source, pair.target), strict=True)
    ]
    return PairWeights(pair, attention, influence, *places)


def places_of(text: Encoding, words: Sequence[str]) -> np.ndarray:
    """Of each word that the tokenizer tells: in which of the `words`, between spaces, it stands."""
    ends = np.cumsum([len(word) + 1 for word in words])
    starts = [text.offsets[first][0] for (first, _), _ in alignment.ordinary_words(text)]
    return np.searchsorted(ends, starts, side="right")


def choose_heads(pairs: Sequence[PairWeights]) -> HeadAlignment | None:
    """The heads whose links people made most often; None where there are no links."""
    return alignment.chosen([p.attention for p in pairs], [p.right for p in pairs], GOLD)


def diagonals(pairs: Sequence[GoldPair]) -> list[Links]:
    return [alignment.diagonal(len(pair.source), len(pair.target)) for pair in pairs]


def turned(links: Links) -> Links:
    return frozenset((j, i) for i, j in links)


@dataclass(frozen=True)
class ErrorRate:
    """The alignment error rate of some pairs, with its 95% interval from bootstrap samples of
    pairs."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.value:.1f}% ({100 * self.low:.1f} to {100 * self.high:.1f})"


def error_rate(found: Sequence[Links], pairs: Sequence[GoldPair], seed: int = 0) -> ErrorRate:
    """Where all gold links are sure (Och and Ney 2003)."""
    gold = [pair.links for pair in pairs]
    both, total = (resamples(len(pairs), SAMPLES, seed) @ alignment.link_counts(found, gold)).T
    low, high = interval(1 - both / np.maximum(total, 1))
    return ErrorRate(alignment.error_rate(found, gold), float(low), float(high))
