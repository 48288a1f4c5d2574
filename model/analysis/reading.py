"""Ways to read attention weights: mean over heads, special tokens hidden, tokens merged into
words, small weights left out, and a table.

Everything here changes the display, never what the model computed: weights go in, new weights come
out. Weights are (.., query, key) and may have any axes in front unless said otherwise; a row that
may attend to nothing is all zero.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from headlight.model.probing.long_trace import Weights
from headlight.model.rounding import percent
from headlight.model.tokenizer import CONTINUES, Encoding

AVERAGES = ("", "heads", "layers", "both")
SPECIAL_TOKENS = ("show", "hide", "hide and renormalise")

Groups = Sequence[tuple[int, int]]  # the tokens [start, stop) of each word, without gaps

# Where two adjacent characters belong to one word: letters, digits and underscores, the apostrophe
# in don't, the point in 3.14, and a mark (accent, vowel sign) with its base character.
_MARK = "\u0301"  # stands for any mark
_LETTER = rf"[\w{_MARK}]"
_INSIDE_A_WORD = re.compile(
    rf"(?<=\S)(?={_MARK})|(?<={_LETTER})(?=['’]?{_LETTER})|(?<={_LETTER}['’])(?={_LETTER})"
    r"|(?<=\d)(?=[.,]\d)|(?<=\d[.,])(?=\d)"
)


@dataclass(frozen=True)
class LabelledWeights:
    """Weights (.., query, key) with labels for rows and columns, and `notes`: a sentence on each
    step of processing."""

    weights: np.ndarray
    query: tuple[str, ...]
    key: tuple[str, ...]
    notes: list[str]


@dataclass(frozen=True)
class Reading:
    """Display options for weights; the defaults change nothing. Raises ValueError for an unknown
    option.

    average   of AVERAGES, see `average`
    words     whether tokens are merged into words
    special   of SPECIAL_TOKENS: what becomes of <pad>, <s> and </s>
    least     weights below it are not shown

    The order is fixed. The mean comes first, of the weights as the model used them: were rows
    scaled before, a head that attends to special tokens alone would count as much as any other.
    Hiding comes before words, so that every token of a word counts the same in the row they
    share. The threshold comes last, because it is about what is drawn.
    """

    average: str = ""
    words: bool = False
    special: str = "show"
    least: float = 0.0

    def __post_init__(self):
        for choice, known in ((self.average, AVERAGES), (self.special, SPECIAL_TOKENS)):
            if choice not in known:
                raise ValueError(f"{choice!r} is not one of {', '.join(map(repr, known))}")

    def apply(
        self, attention: Weights, layer: int, head: int, query: Encoding, key: Encoding
    ) -> LabelledWeights:
        """Apply all options to attention (layers, heads, query, key) of one kind → (query, key)."""
        n_layers, n_heads = attention.shape[:2]
        notes = {
            "": [],
            "heads": [f"Mean over the {_count(n_heads, 'head')} of layer {layer + 1}."],
            "layers": [f"Mean of head {head + 1} over {_count(n_layers, 'layer')}."],
            "both": [f"Mean over {_count(n_heads, 'head')} in {_count(n_layers, 'layer')}."],
        }[self.average]
        picture = self.each(average(attention, self.average, layer, head), query, key)
        return LabelledWeights(picture.weights, picture.query, picture.key, notes + picture.notes)

    def shown(self, encoding: Encoding) -> tuple[tuple[str, ...], list[int]]:
        """The labels of a side after `each`, and the first token of each label."""
        positions = list(range(len(encoding.ids))) if self.special == "show" else ordinary(encoding)
        encoding = encoding.take(positions)
        if not self.words:
            return encoding.tokens, positions
        groups, labels = words(encoding)
        return labels, [positions[start] for start, _ in groups]

    def each(self, weights: np.ndarray, query: Encoding, key: Encoding) -> LabelledWeights:
        """Apply all options except the mean to each of many heads. The notes are about all of
        them."""
        notes = []
        if self.special != "show":
            scaled = self.special == "hide and renormalise"
            received = percent(_received_by_special(weights, query, key))
            fate = "is left out, and rows are rescaled to 100%" if scaled else "is not shown"
            notes.append(
                f"Special tokens are hidden; their weight, up to {received} of a row, {fate}."
            )
            weights, query, key = hide_special(weights, query, key, renormalise=scaled)
        rows, columns = query.tokens, key.tokens
        if self.words:
            (query_groups, rows), (key_groups, columns) = words(query), words(key)
            weights = merge(weights, query_groups, key_groups)
            notes.append("Tokens are merged into words: rows averaged, columns summed.")
        if self.least > 0:
            total = np.nansum(weights)
            share = weights[weights < self.least].sum() / total if total else 0
            notes.append(
                f"Weights below {self.least:g} are hidden: {percent(share)} of all weight."
            )
            weights = threshold(weights, self.least)
        return LabelledWeights(weights, rows, columns, notes)


def average(weights: Weights, over: str, layer: int, head: int) -> np.ndarray:
    """Weights (query, key) of (layers, heads, query, key): the mean over the "heads" of one
    layer, over one head of all "layers", over "both", or with "" that head of that layer."""
    match over:
        case "":
            return weights[layer][head]
        case "heads":
            return weights[layer].mean(axis=0)
        case "layers":
            return reduce(np.add, (one[head] for one in weights)) / len(weights)
        case "both":
            return reduce(np.add, (one.mean(axis=0) for one in weights)) / len(weights)
    raise ValueError(f"{over!r} is not one of {', '.join(map(repr, AVERAGES))}")


def ordinary(encoding: Encoding) -> list[int]:
    """Positions that hold no special token. A typed "</s>" is ordinary text."""
    return [i for i, role in enumerate(encoding.roles) if not role]


def hide_special(
    weights: np.ndarray, query: Encoding, key: Encoding, renormalise: bool = False
) -> tuple[np.ndarray, Encoding, Encoding]:
    """Weights without the rows and columns of special tokens, and the two sides without them.

    What is left of a row sums to less than 1, or to 1 if renormalised; a row of which nothing
    is left stays zero."""
    rows, columns = (np.array(ordinary(side), dtype=int) for side in (query, key))
    remaining = weights[..., rows[:, None], columns]
    if renormalise:
        total = remaining.sum(axis=-1, keepdims=True)
        remaining = np.divide(remaining, total, out=np.zeros_like(remaining), where=total != 0)
    return remaining, query.take(rows), key.take(columns)


def words(encoding: Encoding) -> tuple[Groups, tuple[str, ...]]:
    """The tokens [start, stop) that make up each word of a text, and the word as it was typed.

    A special token is a word, and so is a punctuation mark, unless it holds one together as in
    don't and 3.14. All tokens of one character are of one word. A space that is a token of its
    own goes with the word behind it, as every other space does."""
    text = _text(encoding)
    marked = "".join(_MARK if unicodedata.category(c)[0] == "M" else c for c in text)
    roles, offsets = encoding.roles, encoding.offsets

    def continues(i):
        if any(roles[i - 1 : i + 1]):
            return False
        (begin, end), (start, _) = offsets[i - 1 : i + 1]
        same_character, space_before = start < end, begin == end
        touching = start == end and (space_before or _INSIDE_A_WORD.match(marked, start))
        return same_character or bool(touching)

    starts = [i for i in range(len(roles)) if i == 0 or not continues(i)]
    groups = list(zip(starts, [*starts[1:], len(roles)], strict=True)) if starts else []
    return groups, tuple(
        _visible(text[offsets[start][0] : offsets[stop - 1][1]]) or encoding.tokens[start]
        for start, stop in groups
    )


def merge(weights: np.ndarray, query_groups: Groups, key_groups: Groups) -> np.ndarray:
    """Weights between words: a row is the mean of the rows of its tokens, a column the sum of
    its columns, so that rows still sum to 1. Rows that are all zero are left out of the mean."""
    rows, columns = (
        np.array([start for start, _ in groups], dtype=int) for groups in (query_groups, key_groups)
    )
    filled = weights.any(axis=-1).astype(weights.dtype)  # (.., query)
    counts = np.maximum(np.add.reduceat(filled, rows, axis=-1), 1)
    sums = np.add.reduceat(np.add.reduceat(weights, columns, axis=-1), rows, axis=-2)
    return sums / counts[..., None]


def threshold(weights: np.ndarray, least: float) -> np.ndarray:
    """Weights below `least` become 0; the others stay as they are."""
    return np.where(weights < least, 0, weights)


def as_table(
    weights: np.ndarray, query: Sequence[str], key: Sequence[str], most: int | None = None
) -> tuple[dict[str, list], int]:
    """Columns of a table of (query, key) with a row for each weight that is not zero, in order
    of the query and then from the largest weight down; positions count from 1. Of more than
    `most` weights the largest stay; the second value is how many were omitted."""
    rows, columns = np.nonzero(weights)
    values = weights[rows, columns]
    largest = np.sort(np.argsort(-values, kind="stable")[:most])
    n_omitted = len(values) - len(largest)
    rows, columns, values = rows[largest], columns[largest], values[largest]
    order = np.lexsort((-values, rows))  # the last is the first to sort by; equals stay in order
    rows, columns = rows[order].tolist(), columns[order].tolist()
    table = {
        "query position": [i + 1 for i in rows],
        "query": [query[i] for i in rows],
        "key position": [i + 1 for i in columns],
        "key": [key[i] for i in columns],
        "weight": values[order].tolist(),
    }
    return table, n_omitted


def _received_by_special(weights: np.ndarray, query: Encoding, key: Encoding) -> float:
    """The largest share of a remaining row's weight that went to special tokens."""
    special = [i for i, role in enumerate(key.roles) if role]
    received = weights[..., ordinary(query), :][..., special].sum(axis=-1)
    return float(np.nan_to_num(received).max(initial=0))


def _text(encoding: Encoding) -> str:
    """The text of an encoding, restored from its tokens; spaces where there is no token."""
    characters = [" "] * max((end for _, end in encoding.offsets), default=0)
    for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
        if end - start == 1:
            token = token.partition(" ")[0]  # 🙂 1/4
        if len(token) > end - start:
            token = token.removeprefix(CONTINUES)  # a typed dot is never longer than its span
        if len(token) > end - start:
            token = token.encode("ascii", "backslashreplace").decode("unicode_escape")
        # A token for a space covers nothing.
        for at, character in zip(range(start, end), token, strict=False):
            characters[at] = character
    return "".join(characters)


def _visible(text: str) -> str:
    """Control and other invisible characters as codes, like in the tokenizer's tokens."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
