"""What kind of head is it? Measures for every attention head, and the textbook patterns it is
nearest to.

A number is a mean over rows. Left out are rows of padding, rows that may attend to no key or to one
only and, for a share of weight, rows that may attend to none of the keys in question, or to no
other: they have no choice. So the first row of a causal decoder never counts, and no head is blamed
for the missing token before the first.

A share means little by itself: among three keys, a head that attends to all alike puts a third of
its weight on the previous one. So each measure comes with that of a uniform head in the same rows,
which is the baseline of scores.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from headlight.model.pause import pause
from headlight.model.probing.long_trace import LongTrace, Weights
from headlight.model.probing.trace import Pass, Trace
from headlight.model.rounding import fixed, percent
from headlight.model.tokenizer import ROLES, SPECIAL, Encoding

NAMES: dict[str, str] = dict(zip(ROLES, SPECIAL, strict=True))
PAD, _, END = SPECIAL  # never tokens of a text, whose punctuation and letters are kept apart


@dataclass(frozen=True)
class Measured:
    """Numbers of all heads of one kind of attention; each field is number → (layers, heads).

    entropy        bits
    breadth        (2 ** entropy - 1) / (keys - 1), where keys is how many this row may attend to:
                   0 for a single key, 1 for all alike
    distance       |key - diagonal| in tokens, weighted; in self-attention |key - query|
    itself, previous, next   share of weight on key i, i - 1, i + 1; self-attention only
    first, end, punctuation  share on key 0, on </s>, on punctuation; in self-attention such
                   tokens' own rows are left out, as they may be after nothing but themselves
    same_token     share on keys with the query's text; in self-attention, on others than itself
    diagonal       share on the key nearest to the diagonal; cross-attention only
    coverage       the largest weight that each key gets from any row, summed, as a share of
                   the most there can be: 1 when rows attend each to one key, and to different
                   ones as long as there are; cross-attention only

    The diagonal goes from the first query and key to the last, without padding: row i of n is
    at key i (m - 1) / (n - 1) of m. The target begins with <s>, so row i writes the target's
    word i, counted from 0, and the last row writes </s>, where the source's </s> is.

    Where rows is 0 there was nothing to measure, and the number is 0.
    """

    numbers: dict[str, np.ndarray]
    uniform: dict[str, np.ndarray]  # the same measures for uniform attention
    rows: dict[str, np.ndarray]  # the number of rows behind each mean

    @cached_property
    def scores(self) -> dict[str, np.ndarray]:
        """Pattern → how well each head fits it, from 0 to 1: (layers, heads), NaN where there were
        too few rows; without the patterns that this kind of attention cannot have.

        "local" is for heads that attend around themselves and not to one place: it keeps what the
        best of the exact patterns leaves of it.
        """
        scores = {
            name: np.where(
                self.rows[rule.number] < FEWEST_ROWS,
                np.nan,
                rule.score(self.numbers[rule.number], self.uniform[rule.number]),
            )
            for name, rule in RULES.items()
            if rule.number in self.rows
        }
        exact = [np.nan_to_num(scores[name]) for name in EXACT_PATTERNS if name in scores]
        scores["local"] = scores["local"] * (1 - np.maximum.reduce(exact))
        return scores


def measured(
    trace: Trace | LongTrace, attention: Mapping[str, Weights] | None = None
) -> dict[str, Measured]:
    """Kind → measures of all its heads; for a long trace, pass `attention`."""
    if attention is None:
        assert isinstance(trace, Trace)
        attention = trace.attention
    return {
        kind: measure(weights, *tokens_of(trace, kind), trace.allowed(kind))
        for kind, weights in attention.items()
    }


def tokens_of(trace: Pass, kind: str) -> tuple[Sequence[str], Sequence[str], bool]:
    """Arguments of `measure` for a kind: tokens of rows and columns, and whether both are one
    text."""
    query, key = map(names_of, trace.texts_of(kind))
    return query, key, trace.sides_of(kind)[0] == trace.sides_of(kind)[1]


def names_of(text: Encoding) -> list[str]:
    """Tokens with special tokens renamed as `measure` expects: their names differ between
    vocabularies."""
    return [NAMES.get(role, token) for token, role in zip(text.tokens, text.roles, strict=True)]


def measure(
    weights: Weights,
    query: Sequence[str],
    key: Sequence[str],
    self_attention: bool,
    allowed: np.ndarray | None = None,
) -> Measured:
    """weights: (layers, heads, query, key), rows sum to 1 or are zero; query, key: the tokens
    of the rows and columns; self_attention: whether both are of one text; allowed: (query, key),
    where a row may attend, else to every key that any head puts weight on in that row.
    """
    if allowed is None:
        assert isinstance(weights, np.ndarray)
        allowed = np.any(weights, axis=(0, 1))
    rows = _Rows(allowed, query, key, self_attention)
    # Layer by layer, because intermediate arrays of a long text are large.
    layers = []
    for layer in weights:
        pause()
        layers.append(_means(*rows.of(layer[None])))
    return Measured(
        *(
            {name: np.concatenate([layer[part][name] for layer in layers]) for name in names}
            for part, names in enumerate(layers[0])
        )
    )


def _means(numbers, uniform, counts):
    rows = {name: counted.sum(axis=-1) for name, counted in counts.items()}
    return *(
        {
            name: values[name].sum(axis=-1, where=counts[name]) / np.maximum(rows[name], 1)
            for name in values
        }
        for values in (numbers, uniform)
    ), rows


def total_variation(now: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The share of a row's weight that lies elsewhere than before (half the L1 distance), mean over
    rows: (layers, heads, query, key) twice → (layers, heads)."""
    return np.abs(now - before).sum(-1).mean(-1) / 2


def over_sentences(measured: Sequence[Measured]) -> Measured:
    """Means over all rows of several sentences, measured in one model and kind of attention."""
    rows = {
        name: np.sum([sentence.rows[name] for sentence in measured], axis=0)
        for name in measured[0].rows
    }

    def means(field):
        return {
            name: sum(getattr(sentence, field)[name] * sentence.rows[name] for sentence in measured)
            / np.maximum(rows[name], 1)
            for name in rows
        }

    return Measured(means("numbers"), means("uniform"), rows)


@dataclass(frozen=True)
class PatternRule:
    """Turns a measure into a score: 0 where the measure is `zero`, 1 where it is `one`, linear in
    between. None stands for a uniform head's value."""

    number: str
    reason: str
    zero: float | None = None
    one: float | None = 1.0

    def ends(self, uniform):
        return [uniform if end is None else end for end in (self.zero, self.one)]

    def score(self, number, uniform):
        zero, one = self.ends(uniform)
        # If every row may attend only to a key of its own, no head differs from a uniform one.
        apart = np.abs(one - zero) > 1e-6
        reached = (number - zero) / np.where(apart, one - zero, 1)
        return np.clip(np.where(apart, reached, 0), 0, 1)


def _share(number: str, where: str) -> PatternRule:
    return PatternRule(number, f"{{number}} of its weight is {where} (uniform head: {{uniform}})")


# At equal scores the earlier name wins.
RULES = {
    "previous token": _share("previous", "on the previous token"),
    "next token": _share("next", "on the next token"),
    "itself": _share("itself", "on the token itself"),
    "diagonal": _share("diagonal", "on the token at the same relative position in the source"),
    "one-to-one": PatternRule(
        "coverage",
        "its rows attend to different tokens: {number} of the maximum (uniform head: {uniform})",
    ),
    "same token": _share("same_token", "on other copies of the token, where there are any"),
    "end-of-sentence sink": _share("end", "on the end token"),
    "first-token sink": _share("first", "on the first token"),
    "punctuation": _share("punctuation", "on punctuation"),
    "local": PatternRule(
        "distance",
        "its weight is {number} tokens away on average (uniform head: {uniform})",
        one=0.0,
    ),
    "broad": PatternRule(
        "breadth",
        "its weight is spread {number} of the way from one token to all tokens equally",
        zero=0.0,
        one=None,
    ),
}
EXACT_PATTERNS = (
    "previous token",
    "next token",
    "itself",
    "diagonal",
)  # the exact patterns within "local"
TELLING = ("one-to-one", "diagonal", "previous token", "next token", "same token")
EVEN = 2  # times the weight of an even row, at most, where all rows count as even
FEWEST_ROWS = 2  # one row is not a pattern
ANY = "any"  # instead of a pattern: all heads
# From this score on a head has a pattern. In the models shipped it leaves a few heads to each: over
# the survey of en-de 2 of the 48 attend to the previous token, 3 to the first; 8 of the 16 of
# cross-attention are one-to-one.
THRESHOLD = 0.4


def most_telling(measured: Measured) -> tuple[int, int]:
    """The head, (layer, head) of the arrays, that most clearly attends to certain other tokens."""
    scores = [measured.scores[name] for name in TELLING if name in measured.scores]
    best = np.max(np.nan_to_num(scores), axis=0)
    layer, head = np.unravel_index(best.argmax(), best.shape)
    return int(layer), int(head)


def most_telling_row(weights: np.ndarray, rows: Sequence[str], keys: Sequence[str]) -> int | None:
    """The row of one head, weights (query, key), that shows best what it does: a word that attends
    to one word far from its own place. `rows`: the word that the head follows at each row. None if
    there is no such row, or every row spreads its weight almost evenly, as random weights do. The
    stage marks the same one (app/components/stage/state.js)."""
    visible, largest = (weights > 0).sum(-1), weights.max(-1)
    choosing = visible > EVEN
    if choosing.any() and (largest * visible <= EVEN)[choosing].all():
        return None
    key = weights.argmax(-1)
    far = np.abs(np.arange(len(weights)) / len(weights) - key / weights.shape[-1])
    named, to_word = (np.array([is_word(token) for token in some]) for some in (rows, keys))
    # Cubed: a row that is split between two tokens tells less than a clear one nearby.
    tells = named * largest**3 * (0.1 + far) * np.where(to_word[key], 1, 0.1)
    return int(tells.argmax()) if tells.any() else None


def is_word(token: str) -> bool:
    """Whether a token contains a letter or a digit and is not special."""
    return any(map(str.isalnum, token)) and not re.fullmatch(r"<.+>|\[.+\]", token)


def heads_with(
    measured: Mapping[str, Measured], pattern: str = ANY
) -> dict[str, list[tuple[int, int]]]:
    """Kind → the heads that have a pattern, as (layer, head) of the arrays; of ANY, all heads."""
    return {
        kind: [
            (layer, head)
            for layer, head in np.ndindex(measures.rows["entropy"].shape)
            if pattern == ANY
            or (pattern in measures.scores and measures.scores[pattern][layer, head] >= THRESHOLD)
        ]
        for kind, measures in measured.items()
    }


def nearest_heads(
    measured: Mapping[str, Measured], pattern: str, count: int = 3
) -> dict[str, list[tuple[int, int]]]:
    """The heads that come nearest to a pattern, as heads_with gives them; none where it was not
    measured."""
    scores = [
        (-measures.scores[pattern][layer, head], kind, (layer, head))
        for kind, measures in measured.items()
        if pattern in measures.scores
        for layer, head in np.argwhere(np.isfinite(measures.scores[pattern])).tolist()
    ]
    nearest: dict[str, list[tuple[int, int]]] = {}
    for _, kind, place in sorted(scores)[:count]:
        nearest.setdefault(kind, []).append(place)
    return nearest


@dataclass(frozen=True)
class Match:
    """A textbook name for one head, how well it fits from 0 to 1, and in words why."""

    name: str
    score: float
    reason: str


def nearest_names(measured: Measured, layer: int, head: int, count: int = 2) -> list[Match]:
    """The patterns that fit one head best, best first; none if there were too few rows."""
    scores = {name: float(of[layer, head]) for name, of in measured.scores.items()}
    scores = {name: score for name, score in scores.items() if score == score}  # not NaN
    best = sorted(scores, key=scores.__getitem__, reverse=True)[:count]
    return [Match(name, scores[name], _reason(measured, layer, head, name)) for name in best]


# Habit → the patterns that belong to it. A head has the habit of the pattern that it is nearest to:
# a head's group and the pattern that is named beside it agree.
ALIGNS, MATCHES, NEIGHBOURS, SPREAD, SINK = "align", "match", "neighbours", "spread", "sink"
HABITS = {
    ALIGNS: ("one-to-one", "diagonal"),
    MATCHES: ("same token",),
    NEIGHBOURS: ("previous token", "next token", "itself", "local"),
    SPREAD: ("broad",),
    SINK: ("end-of-sentence sink", "first-token sink", "punctuation"),
}
# Of the way from a uniform head to a perfect one: a head below it resembles no pattern. In the
# models shipped that is one head, the induction head of “induction”, for which there is no pattern.
LEAST_LIKE = 0.2
# From this share of aligned target words on, which takes many sentences to know, a head aligns
# words, whatever it is nearest to. A survey names heads by the same (surveys/survey.py).
LEAST_ALIGNED = 0.5


def habit_of(
    measured: Measured, layer: int, head: int, aligned: float = 0.0
) -> tuple[str, Match] | None:
    """What a head does most, one of HABITS, and the pattern that it is nearest to. `aligned`: the
    share of target words that a survey saw it align. None where it resembles no pattern, or where
    there were too few rows."""
    nearest = next(iter(nearest_names(measured, layer, head, 1)), None)
    if nearest is None or max(nearest.score, aligned) < LEAST_LIKE:
        return None
    name = next(name for name, patterns in HABITS.items() if nearest.name in patterns)
    # Between two texts, copies of a token are names, numbers and punctuation: words to align.
    two_texts = "diagonal" in measured.numbers
    if aligned >= LEAST_ALIGNED or (name == MATCHES and two_texts):
        name = ALIGNS
    return name, nearest


def _reason(measured: Measured, layer: int, head: int, name: str) -> str:
    rule = RULES[name]
    number, uniform = (of[rule.number][layer, head] for of in (measured.numbers, measured.uniform))
    written = partial(fixed, digits=1) if rule.number == "distance" else percent
    return rule.reason.format(number=written(number), uniform=written(uniform))


def rows_that_show(
    weights: np.ndarray,
    query: Sequence[str],
    key: Sequence[str],
    self_attention: bool,
    layer: int,
    head: int,
    name: str,
    count: int = 3,
) -> list[int]:
    """The rows in which one head shows a pattern most clearly, best first; arguments as in
    `measure`.

    Rows are compared with uniform attention: all weight on one of ten keys says more than all
    weight on one of two. KeyError if the kind has no such name.
    """
    rule = RULES[name]
    actual, uniform, counted = (
        part[rule.number][0, 0]
        for part in _Rows(weights.any(axis=(0, 1)), query, key, self_attention).of(
            weights[None, None, layer, head]
        )
    )
    zero, one = rule.ends(uniform)
    beyond = (actual - zero) * np.sign(one - zero)
    order = np.argsort(-beyond, kind="stable")
    return [int(i) for i in order if counted[i] and beyond[i] > 1e-6][:count]


def with_one_key(allowed: np.ndarray) -> list[int]:
    """Rows of (query, key) that may attend to a single key, which gets all the weight whatever the
    head does."""
    return np.flatnonzero(allowed.sum(axis=-1) == 1).tolist()


class _Rows:
    """Measures row by row, of texts that are given once. allowed: (query, key), what a row may
    attend to."""

    def __init__(self, allowed, query, key, self_attention):
        self.allowed, self.self_attention = allowed, self_attention
        self.real = np.array([token != PAD for token in query])
        self.keys = allowed.sum(axis=-1)
        self.distance, patterns = _geometry(query, key, self_attention)
        patterns = {name: np.broadcast_to(one, allowed.shape) for name, one in patterns.items()}
        self.cells = {name: _cells(pattern) for name, pattern in patterns.items()}
        self.choice = {
            name: (allowed & pattern).any(axis=-1) & (allowed & ~pattern).any(axis=-1)
            for name, pattern in patterns.items()
        }
        keys = np.maximum(self.keys, 2)  # avoids division by 0 in rows that do not count
        self.even = (allowed / keys[:, None]).astype(np.float32)
        self.uniform = self._numbers(self.even)

    def of(self, weights: np.ndarray):
        """The numbers of (layers, heads, query, key), those of a uniform head, and which rows
        count: three times number → (layers, heads, query)."""
        counts = weights.any(axis=-1) & self.real & (self.keys > 1)
        actual = self._numbers(weights)
        uniform = {name: np.broadcast_to(one, counts.shape) for name, one in self.uniform.items()}
        if not self.self_attention:
            actual["coverage"] = self._coverage(weights, counts)
            uniform["coverage"] = self._coverage(self.even, counts)
        return actual, uniform, {name: counts & self.choice.get(name, True) for name in actual}

    def _numbers(self, weights):
        bits = np.log2(weights, where=weights > 0, out=np.zeros_like(weights))
        entropy = np.maximum(-_over_keys(weights, bits), 0)  # rounding may give weights over 1
        values = {
            "entropy": entropy,
            "breadth": (2**entropy - 1) / (np.maximum(self.keys, 2) - 1),
            "distance": _over_keys(weights, self.distance.astype(weights.dtype)),
        }
        return values | {name: _sums(weights, *cells) for name, cells in self.cells.items()}

    def _coverage(self, weights, counts):
        """A key belongs to the row that attends to it most; tied rows share it."""
        rows = counts.sum(axis=-1, keepdims=True)
        coverable = np.maximum(np.minimum(rows, self.allowed.any(axis=0).sum()), 1)
        weights = weights * counts[..., None]
        largest = weights == weights.max(axis=-2, keepdims=True)
        shared = np.maximum(largest.sum(axis=-2, keepdims=True), 1)  # beside NaN none is largest
        owned = _over_keys(weights, largest / shared)
        return owned * rows / coverable


def _over_keys(weights, values):
    return np.einsum("...k,...k->...", weights, values)


def _cells(pattern):
    """The cells of a pattern in sparse form: their rows and columns, the non-empty rows, and where
    each begins."""
    rows, columns = np.nonzero(pattern)
    return rows, columns, *np.unique(rows, return_index=True)


def _sums(weights, rows, columns, filled, starts):
    """The sum of each row over the cells of a pattern."""
    sums = np.zeros(weights.shape[:-1], weights.dtype)
    if len(filled):
        sums[..., filled] = np.add.reduceat(weights[..., rows, columns], starts, axis=-1)
    return sums


def _geometry(query, key, self_attention):
    """Distances from the diagonal, and which keys each share is of; all (query, key)."""
    i, j = np.arange(len(query))[:, None], np.arange(len(key))
    n, m = (sum(token != PAD for token in side) for side in (query, key))
    diagonal = i * (m - 1) / max(n - 1, 1)
    codes = {token: code for code, token in enumerate({*query, *key})}
    query_codes, key_codes = (np.array([codes[token] for token in side]) for side in (query, key))
    same = query_codes[:, None] == key_codes
    patterns = {
        "first": j == 0,
        "end": np.array([token == END for token in key]),
        "punctuation": np.array([is_punctuation(token) for token in key]),
    }
    if not self_attention:
        patterns |= {"same_token": same, "diagonal": j == np.floor(diagonal + 0.5)}
    else:
        patterns = {name: such & ~such[:, None] for name, such in patterns.items()}
        patterns |= {"itself": j == i, "previous": j == i - 1, "next": j == i + 1}
        patterns["same_token"] = same & (j != i)
    return np.abs(j - diagonal), patterns


def is_punctuation(token: str) -> bool:
    return {unicodedata.category(character)[0] for character in token} == {"P"}
