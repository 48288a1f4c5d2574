"""Measures of every head in one sentence, which can be summed over sentences: the head metrics
(analysis/head_metrics.py), and those by which the papers name heads.

    positional  share of rows whose largest weight is at one offset from the row (Voita et al. 2019,
                section 5: a head is called positional from 90% on)
    separators  share of weight on special tokens and punctuation (Clark et al. 2019, section 3.2)
    rare        share of rows whose largest weight is on the rarest token that they may attend to
                (Voita et al. 2019, section 5: the least frequent tokens of a sentence)
    alignment   share of target words whose most attended source word is the one that the model
                needs most (analysis/alignment.py), at both shifts

The previous and the next token are among the metrics. Rows without a choice count for nothing, as
there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from headlight.model.analysis import alignment
from headlight.model.analysis.alignment import SHIFTS, aligning_kind
from headlight.model.analysis.head_metrics import is_punctuation, measure, names_of
from headlight.model.checkpoint import Checkpoint
from headlight.model.probing.run import Run
from headlight.model.probing.sites import kinds_of
from headlight.model.surveys.importance import Example
from headlight.model.surveys.sentences import Sentence, SentenceAttention, attend
from headlight.model.tokenizer import Encoding

OFFSETS = range(-3, 4)
FEWEST_ROWS = 4  # rows that a sentence needs to show what a head does
SEPARATORS, RARE = "separators", "rare"


def positional(offset: int) -> str:
    return f"positional {offset:+d}"


def aligned(shift: int) -> str:
    return f"alignment {shift}"


@dataclass(frozen=True)
class HeadCounts:
    """One measure of all heads of a kind in one sentence, each (layers, heads): the sum over rows,
    the same for a uniform head, and the number of rows."""

    total: np.ndarray
    uniform: np.ndarray
    rows: np.ndarray

    def means(self, layer: int, head: int) -> tuple[float, float] | None:
        """Of one head, and of a uniform one, over the rows of the sentence; None of too few."""
        total, uniform, rows = (of[layer, head] for of in (self.total, self.uniform, self.rows))
        return (total / rows, uniform / rows) if rows >= FEWEST_ROWS else None


Counts = dict[str, dict[str, HeadCounts]]  # kind → measure → counts


def frequencies(examples: Iterable[Example]) -> list[Counter]:
    """For each side, how often each token occurs in all examples."""
    return [Counter(i for ids in side for i in ids)
            for side in zip(*(e.texts for e in examples), strict=True)]  # fmt: skip


def head_counts(
    checkpoint: Checkpoint, examples: list[Example], frequency: list[Counter], n_aligned: int
) -> list[Counts]:
    """Of each sentence; alignment, which takes many passes a sentence, for the first `n_aligned`
    numbers alone."""
    sentences = [Sentence(e.number, e.texts) for e in examples]
    counts = []
    for attention in attend(checkpoint, sentences):
        by_side = dict(zip(attention.sides, frequency, strict=True))
        kind_counts = {
            kind: _counts(weights, attention, kind, by_side)
            for kind, weights in attention.attention.items()
        }
        if kind := aligning_kind(attention.sites, attention.sides.values()):
            kind_counts[kind] |= _alignment(
                checkpoint, attention, kind, attention.number <= n_aligned
            )
        counts.append(kind_counts)
    return counts


def _counts(
    weights: np.ndarray, one: SentenceAttention, kind: str, frequency: Mapping[str, Counter]
) -> dict[str, HeadCounts]:
    site = kinds_of(one.sites)[kind][0]
    query, key = one.texts[site.query_side], one.texts[site.key_side]
    metrics = measure(weights, names_of(query), names_of(key), site.query_side == site.key_side)
    counts = {
        name: HeadCounts(metrics.numbers[name] * rows, metrics.uniform[name] * rows, rows)
        for name, rows in metrics.rows.items()
    }
    return counts | patterns(weights, key, frequency[site.key_side])


def patterns(weights: np.ndarray, key: Encoding, frequency: Counter) -> dict[str, HeadCounts]:
    """The named patterns but alignment, of weights (layers, heads, query, key). A row may attend to
    every key that any head puts weight on in that row."""
    allowed = weights.any(axis=(0, 1))  # (query, key)
    keys = np.maximum(allowed.sum(axis=-1), 1)
    largest = weights == weights.max(axis=-1, keepdims=True)
    largest = largest / largest.sum(axis=-1, keepdims=True)  # equals share
    special = np.array([bool(role) for role in key.roles])
    separators = special | np.array([is_punctuation(token) for token in key.tokens])
    counts = np.where(allowed & ~special, [frequency[i] for i in key.ids], np.inf)
    rarest = (counts == counts.min(axis=-1, keepdims=True)) & np.isfinite(counts)
    offset = np.arange(weights.shape[-1]) - np.arange(weights.shape[-2])[:, None]
    shares = {positional(o): (largest, offset == o) for o in OFFSETS}
    shares |= {SEPARATORS: (weights, np.broadcast_to(separators, allowed.shape))}
    shares |= {RARE: (largest, rarest)}

    by_name = {}
    for name, (share, such) in shares.items():
        such = such & allowed
        choice = such.any(axis=-1) & (allowed & ~such).any(axis=-1)  # (query,)
        rows = choice & weights.any(axis=-1)  # (layers, heads, query)
        by_row = np.einsum("lhqk,qk->lhq", share, such)
        by_name[name] = HeadCounts(
            (by_row * rows).sum(axis=-1),
            (such.sum(axis=-1) / keys * rows).sum(axis=-1),
            rows.sum(axis=-1),
        )
    return by_name


def _alignment(
    checkpoint: Checkpoint, one: SentenceAttention, kind: str, wanted: bool
) -> dict[str, HeadCounts]:
    """The number of target words that each head aligns with the source word that the model needs
    most."""
    zeros = np.zeros(one.attention[kind].shape[:2])
    if not wanted:
        return {aligned(shift): HeadCounts(zeros, zeros, zeros) for shift in SHIFTS}
    site = kinds_of(one.sites)[kind][0]
    by_head = alignment.of_attention(
        one.attention[kind], one.texts[site.query_side], one.texts[site.key_side]
    )
    texts = tuple(_without_special(one.texts[name]) for name in one.sides)
    needed = alignment.of_influence(checkpoint.model, Run(texts)).weights
    if not needed.size:
        return {aligned(shift): HeadCounts(zeros, zeros, zeros) for shift in SHIFTS}
    hits = by_head.weights.argmax(axis=-1) == needed.argmax(axis=-1)
    rows = np.full(zeros.shape, hits.shape[-1], dtype=float)
    chance = rows / needed.shape[-1]
    return {
        aligned(shift): HeadCounts(hits[shift].sum(axis=-1).astype(float), chance, rows)
        for shift in SHIFTS
    }


def _without_special(text: Encoding) -> Encoding:
    """The tokens without the side's bos and eos."""
    start = int(bool(text.ids) and bool(text.roles[0]))
    stop = len(text.ids) - int(len(text.ids) > start and bool(text.roles[-1]))
    return text.take(range(start, stop))
