"""Which source word a target word goes with: out of cross-attention, or out of what the model loses
without the source word.

The row of a decoder that reads a token predicts the next one, and a head may attend to what goes
with either: a shift of 0 aligns a row with the token that is read there, 1 with the one that is
predicted.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from torch import nn

from model.analysis.reading import words
from model.probing import sweeps
from model.probing.applying import Given
from model.probing.run import Run
from model.probing.sweeps import Score
from model.probing.trace import Trace, read_of
from model.tokenizer import Encoding

READ, PREDICTED = 0, 1
SHIFTS = (READ, PREDICTED)
Links = frozenset[tuple[int, int]]  # (source word, target word), from 0


@dataclass(frozen=True)
class WordWeights:
    """How much each target word has to do with each source word, (.., target word, source word);
    special tokens are left out."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: np.ndarray

    def links(self) -> Links:
        """Each target word with the source word that it has most to do with; of one `weights`
        alone."""
        if not self.weights.size:
            return frozenset()
        return frozenset((int(best), i) for i, best in enumerate(self.weights.argmax(axis=-1)))


def of_attention(trace: Trace, shift: int, kind: str = "cross") -> WordWeights:
    """Cross-attention between words, (layers, heads, target word, source word): a target word has
    the mean of its rows, a source word the sum of its columns."""
    weights = np.roll(trace.attention[kind], shift, axis=-2)  # the first row is that of <s>
    query, key = trace.texts_of(kind)
    return _of_words(weights, query, key, np.mean)


def of_influence(model: nn.Module, run: Run, given: Given = Given()) -> WordWeights:
    """By how much the log-probability of each target word falls when a source word is hidden from
    every query: what depends on what, and not what attends to what. Source tokens are hidden one by
    one. `model` must be the caller's own view."""
    source, target = (side.name for side in model.sides())
    texts = read_of(model, run)
    hidden = sweeps.tokens_hidden(model, {source: len(texts[source].ids)})
    swept = sweeps.sweep(model, run, hidden, Score(each=True), given)
    lost = np.roll(-swept.effects.T, PREDICTED, axis=0)  # (target token, source token)
    return _of_words(lost, texts[target], texts[source], np.sum)


def _of_words(weights: np.ndarray, query: Encoding, key: Encoding, together) -> WordWeights:
    """Weights (.., query, key) of tokens between words: columns summed, rows put `together`."""
    rows, columns = (_ordinary_words(text) for text in (query, key))
    merged = [
        together(weights[..., start:stop, :], axis=-2) for start, stop in (span for span, _ in rows)
    ]
    weights = np.stack(merged, axis=-2) if merged else weights[..., :0, :]
    merged = [weights[..., start:stop].sum(axis=-1) for (start, stop), _ in columns]
    weights = np.stack(merged, axis=-1) if merged else weights[..., :0]
    return WordWeights(tuple(word for _, word in columns), tuple(word for _, word in rows), weights)


def _ordinary_words(text: Encoding) -> list[tuple[tuple[int, int], str]]:
    """Tokens [start, stop) of each word, and the word, without special tokens."""
    groups, names = words(text)
    return [
        (group, name) for group, name in zip(groups, names, strict=True) if not text.roles[group[0]]
    ]


def pharaoh(links: Links) -> str:
    """As word aligners write them: `0-0 1-2`, source first."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def error_rate(found: Iterable[Links], gold: Iterable[Links]) -> float:
    """Alignment error rate over sentences, where all gold links are sure (Och and Ney 2003)."""
    both = total = 0
    for one, other in zip(found, gold, strict=True):
        both += 2 * len(one & other)
        total += len(one) + len(other)
    return 1 - both / total if total else 0.0


def diagonal(n_source: int, n_target: int) -> Links:
    """The baseline that knows nothing: words in the same place of both sentences."""
    return frozenset(
        (min(n_source - 1, int((i + 0.5) * n_source / n_target)), i)
        for i in range(n_target)
        if n_source
    )
