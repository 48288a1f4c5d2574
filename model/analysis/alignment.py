"""Word alignment between source and target: from cross-attention, or from how much the model loses
without a source word.

The row of a decoder that reads a token predicts the next one, and a head may attend to what goes
with either: a shift of 0 aligns a row with the token that is read there, 1 with the one that is
predicted. Which of the two a head does is measured: its most attended word is compared with the
word that the model needs most, known from the next-token probabilities without any shift.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from headlight.model.analysis.reading import words
from headlight.model.by_value import ByValue, OneLine
from headlight.model.probing import sweeps
from headlight.model.probing.applying import PatchInputs
from headlight.model.probing.run import Run
from headlight.model.probing.sites import kinds_of
from headlight.model.probing.sweeps import Score
from headlight.model.probing.trace import Trace, read_of
from headlight.model.sites import ProbedModel, Side, Site
from headlight.model.tokenizer import Encoding

JUST_READ, PREDICTED = 0, 1
SHIFTS = (JUST_READ, PREDICTED)
SURE = 2  # standard errors by which a further head must improve a set
INFLUENCE, GOLD = "influence", "gold links"  # what tells which source word is right
NO_HEADS = "no chosen heads: by influence"
Links = frozenset[tuple[int, int]]  # (source word, target word), from 0
Head = tuple[int, int]  # (layer, head) of the kind that aligns, from 0


@dataclass(frozen=True, repr=False, eq=False)
class WordWeights(ByValue):
    """A weight for each pair of words, (.., target word, source word), without special tokens."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: np.ndarray

    def links(self) -> Links:
        """The source word with the largest weight for each target word; for a single matrix."""
        if not self.weights.size:
            return frozenset()
        return frozenset((int(best), i) for i, best in enumerate(self.weights.argmax(axis=-1)))

    def shares(self) -> "WordWeights":
        """Each row's positive values as shares of their sum; zeros if there are none."""
        positive = self.weights.clip(min=0)
        total = positive.sum(axis=-1, keepdims=True)
        shares = np.divide(positive, total, out=np.zeros_like(positive), where=total > 0)
        return replace(self, weights=shares)


@dataclass(frozen=True, repr=False)
class HeadAlignment(OneLine):
    """How well the cross-attention heads align.

    agreement  (shift, layer, head): the share of target words whose most attended source word is
               right
    heads      the set whose mean agrees best, each head at its better shift, the best one first
    together   the agreement of that set
    words      how many target words that was measured on
    by         which source word is right: by INFLUENCE the one that the model needs most (see
               `of_influence`), by GOLD each that a person linked
    """

    agreement: Sequence[Sequence[Sequence[float]]]
    heads: Sequence[Head]
    together: float
    words: int
    by: str = INFLUENCE

    @classmethod
    def unmeasured(cls, n_layers: int, n_heads: int) -> "HeadAlignment":
        """Of heads of which nothing is known: they align the word that a row reads."""
        return cls(np.zeros((len(SHIFTS), n_layers, n_heads)).tolist(), [(0, 0)], 0.0, 0)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of layers and heads."""
        return np.asarray(self.agreement).shape[1:]

    @property
    def shifts(self) -> np.ndarray:
        """The better shift of each head, (layers, heads)."""
        return np.asarray(self.agreement).argmax(axis=0)

    def of(
        self, attention: WordWeights, heads: Sequence[Head] = (), shift: int | None = None
    ) -> WordWeights:
        """The mean over some heads (by default the best set) of what `of_attention` gives: each
        head at its own shift, or all at one."""
        shifts = self.shifts
        some = [
            attention.weights[shifts[head] if shift is None else shift][head]
            for head in map(tuple, heads or self.heads)
        ]
        return replace(attention, weights=np.mean(some, axis=0))

    @classmethod
    def of_card(cls, card: Mapping) -> "HeadAlignment | None":
        """None if the card has no valid entry."""
        try:
            alignment = cls(**card["alignment"])
            n_shifts, *sizes = np.asarray(alignment.agreement, dtype=float).shape
            heads = [(int(layer), int(head)) for layer, head in alignment.heads]
            if n_shifts != len(SHIFTS) or not heads or not (np.array(heads) < sizes).all():
                return None
            if alignment.by not in (INFLUENCE, GOLD):
                return None
            return cls(
                alignment.agreement,
                heads,
                float(alignment.together),
                int(alignment.words),
                alignment.by,
            )
        except (KeyError, TypeError, ValueError):
            return None

    def to_card(self) -> dict:
        return asdict(self)


def aligning_kind(sites: Iterable[Site], sides: Iterable[Side]) -> str | None:
    """The kind of attention from the generated text to another text; None if there is none."""
    writing = {side.name for side in sides if side.writes}
    for kind, (site, *_) in kinds_of(sites).items():
        if site.query_side in writing and site.key_side not in writing:
            return kind
    return None


def of_attention(weights: np.ndarray, query: Encoding, key: Encoding) -> WordWeights:
    """Attention (layers, heads, query, key) between words, (shift, layers, heads, target word,
    source word): a target word has the mean of its rows, a source word the sum of its columns."""
    # The first row is that of <s>: rolled by one, each row is at the token that it predicts.
    shifted = np.stack([np.roll(weights, shift, axis=-2) for shift in SHIFTS])
    return _of_words(shifted, query, key, np.mean)


def of_trace(trace: Trace) -> WordWeights:
    """`of_attention` of a trace. Raises ValueError for a model that has no cross-attention."""
    kind = aligning_kind(trace.sites, trace.sides.values())
    if kind is None:
        raise ValueError("This model has no cross-attention, so it aligns nothing.")
    return of_attention(trace.attention[kind], *trace.texts_of(kind))


def measured(
    attention: Sequence[WordWeights], influence: Sequence[WordWeights]
) -> HeadAlignment | None:
    """As `chosen`; right is the word that the model needs most, by `of_influence`."""
    return chosen(attention, [largest(one.weights) for one in influence], INFLUENCE)


def largest(weights: np.ndarray) -> np.ndarray:
    """Weights (.., target word, source word) → whether each is the first largest of its row."""
    if not weights.size:
        return np.zeros(weights.shape, dtype=bool)
    return np.arange(weights.shape[-1]) == weights.argmax(axis=-1, keepdims=True)


def chosen(
    attention: Sequence[WordWeights], right: Sequence[np.ndarray], by: str
) -> HeadAlignment | None:
    """Which heads align some sentences best, each by `of_attention` and with the links that are
    right, (target word, source word) of bool; None where none is. A target word without any does
    not count. The set of heads grows by the one that helps most, until none is sure to help."""
    pairs = [(a.weights, links) for a, links in zip(attention, right, strict=True) if links.any()]
    if not pairs:
        return None

    def hits(weights: Iterable[np.ndarray]) -> np.ndarray:
        """(.., target words of all sentences): whether the largest weight is on the reference
        word."""
        each = []
        for of_sentence, (_, links) in zip(weights, pairs, strict=True):
            linked = np.any(links, axis=-1).nonzero()[0]
            each.append(links[linked, of_sentence.argmax(axis=-1)[..., linked]])
        return np.concatenate(each, axis=-1).astype(float)

    agreement = hits(weights for weights, _ in pairs).mean(axis=-1)
    shifts = agreement.argmax(axis=0)
    single = {
        head: [weights[shifts[head]][head] for weights, _ in pairs]
        for head in np.ndindex(shifts.shape)
    }
    heads: list[Head] = []
    total, hit = [0.0] * len(pairs), np.zeros(1)
    while rest := [head for head in single if head not in heads]:
        further = {
            head: hits([sum_ + one for sum_, one in zip(total, single[head], strict=True)])
            for head in rest
        }
        best = max(rest, key=lambda head: further[head].mean())
        gain = further[best] - hit
        if heads and gain.mean() <= SURE * gain.std() / len(gain) ** 0.5:
            break
        heads, hit = [*heads, best], further[best]
        total = [sum_ + one for sum_, one in zip(total, single[best], strict=True)]
    together = round(float(hit.mean()), 4)
    return HeadAlignment(agreement.round(4).tolist(), heads, together, len(hit), by)


def of_influence(model: ProbedModel, run: Run, given: PatchInputs = PatchInputs()) -> WordWeights:
    """How much the log-probability of each target word falls when a source word is hidden from
    every query: dependence, not attention. Source tokens are hidden one by one. `model` must be the
    caller's own view."""
    source, target = (side.name for side in model.sides())
    texts = read_of(model, run)
    hidden = sweeps.tokens_hidden(model, {source: len(texts[source].ids)})
    swept = sweeps.sweep(model, run, hidden, Score(each=True), given)
    lost = np.roll(-swept.effects.T, PREDICTED, axis=0)  # (target token, source token)
    return _of_words(lost, texts[target], texts[source], np.sum)


def _of_words(weights: np.ndarray, query: Encoding, key: Encoding, together) -> WordWeights:
    """Weights (.., query, key) of tokens between words: columns summed, rows put `together`."""
    rows, columns = (ordinary_words(text) for text in (query, key))
    merged = [
        together(weights[..., start:stop, :], axis=-2) for start, stop in (span for span, _ in rows)
    ]
    weights = np.stack(merged, axis=-2) if merged else weights[..., :0, :]
    merged = [weights[..., start:stop].sum(axis=-1) for (start, stop), _ in columns]
    weights = np.stack(merged, axis=-1) if merged else weights[..., :0]
    return WordWeights(tuple(word for _, word in columns), tuple(word for _, word in rows), weights)


def ordinary_words(text: Encoding) -> list[tuple[tuple[int, int], str]]:
    """Tokens [start, stop) of each word, and the word, without special tokens."""
    groups, names = words(text)
    return [
        (group, name) for group, name in zip(groups, names, strict=True) if not text.roles[group[0]]
    ]


def pharaoh(links: Links) -> str:
    """As word aligners write them: `0-0 1-2`, source first."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def error_rate(predicted: Iterable[Links], gold: Iterable[Links]) -> float:
    """Alignment error rate over sentences, where all gold links are sure (Och and Ney 2003)."""
    both, total = link_counts(predicted, gold).sum(axis=0)
    return float(1 - both / total) if total else 0.0


def link_counts(found: Iterable[Links], gold: Iterable[Links]) -> np.ndarray:
    """(sentence, 2): twice the links that are in both, and the links of both; what `error_rate` is
    counted from."""
    both = [(2 * len(a & b), len(a) + len(b)) for a, b in zip(found, gold, strict=True)]
    return np.array(both, dtype=float).reshape(-1, 2)


def diagonal(n_source: int, n_target: int) -> Links:
    """The trivial baseline: words at the same position of both sentences."""
    return frozenset(
        (min(n_source - 1, int((i + 0.5) * n_source / n_target)), i)
        for i in range(n_target)
        if n_source
    )
