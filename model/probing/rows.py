"""Attention weights as rows of a table. Layers, heads, positions and sentences count from 1 there,
as on the screen."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from headlight.model.probing.sites import kinds_of
from headlight.model.sites import Side, Site
from headlight.model.tokenizer import Encoding

ROW_COLUMNS = {
    "sentence": np.int32,
    "attention": np.int8,
    "layer": np.int16,
    "head": np.int16,
    "query_position": np.int16,
    "query_token": np.int32,
    "row_word": np.int32,
    "key_position": np.int16,
    "key_token": np.int32,
    "weight": np.float32,
}
MAX_ROWS_IN_MEMORY = 2**21  # of a table in memory
TOKENS = ("query_token", "row_word", "key_token")  # columns


class HasAttention(Protocol):
    """The part of a Trace that a table is written from."""

    @property
    def sides(self) -> Mapping[str, Side]: ...
    @property
    def sites(self) -> Sequence[Site]: ...
    @property
    def texts(self) -> Mapping[str, Encoding]: ...
    @property
    def next_tokens(self) -> Sequence[str]: ...
    @property
    def shifts(self) -> Mapping[str, np.ndarray]: ...
    @property
    def attention(self) -> Mapping[str, np.ndarray]: ...


@dataclass(frozen=True)
class KindWeights:
    """Weights of one kind of one sentence, (layers, heads, query, key), or some of them: `layers`
    are the numbers of theirs, and `first_head` the head that they begin with, from 0. `shifts`,
    (layers, heads): 1 where a head follows the word that a row predicts, of `following`, and not
    the one that the row reads; None where all follow the latter."""

    sentence: int
    kind: str
    layers: Sequence[int]
    weights: np.ndarray
    query: Sequence[str]  # tokens
    key: Sequence[str]
    first_head: int = 0
    shifts: np.ndarray | None = None
    following: Sequence[str] = ()

    def by_row(self, read: np.ndarray, following: np.ndarray) -> np.ndarray:
        """Of two values a row, each (query,), that of the word which a head follows; to be
        broadcast to (layers, heads, query)."""
        return read if self.shifts is None else np.where(self.shifts[..., None], following, read)


def kind_weights(traces: Sequence[HasAttention], numbers: Sequence[int]) -> Iterator[KindWeights]:
    """All weights of some sentences, of a long one layer by layer; `numbers` are what to call
    the sentences."""
    for number, trace in zip(numbers, traces, strict=True):
        for kind, sites in kinds_of(trace.sites).items():
            weights, layers = trace.attention[kind], [site.layer for site in sites]
            query, key = (
                trace.texts[side].tokens for side in (sites[0].query_side, sites[0].key_side)
            )
            each = 1 if weights.size > MAX_ROWS_IN_MEMORY else len(weights)
            for first in range(0, len(weights), each):
                some = slice(first, first + each)
                words = followed(trace, kind, some)
                yield KindWeights(number, kind, layers[some], weights[some], query, key, 0, *words)


def followed(
    trace: HasAttention, kind: str, some: slice | tuple[slice, slice]
) -> tuple[np.ndarray | None, Sequence[str]]:
    """Which words some layers, or heads, of a kind follow: KindWeights.shifts and .following."""
    return (trace.shifts[kind][some], trace.next_tokens) if kind in trace.shifts else (None, ())


def rows(some: Sequence[KindWeights]) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    """One row for each weight, by column, see COLUMNS; in the order of blocks, layers, heads,
    queries and keys. Columns of text hold codes: the second value is what they stand for."""
    count = sum(block.weights.size for block in some)
    columns = {name: np.empty(count, dtype) for name, dtype in ROW_COLUMNS.items()}
    tokens: dict[str, int] = {}  # in the order in which they were met
    kinds: dict[str, int] = {}
    stop = 0
    for block in some:
        _, heads, queries, keys = (np.arange(1, n + 1) for n in block.weights.shape)
        query_tokens, key_tokens, following = (
            np.array([tokens.setdefault(token, len(tokens)) for token in side])
            for side in (block.query, block.key, block.following)
        )
        values = {
            "sentence": block.sentence,
            "attention": kinds.setdefault(block.kind, len(kinds)),
            "layer": np.array(block.layers)[:, None, None, None] + 1,
            "head": (block.first_head + heads)[:, None, None],
            "query_position": queries[:, None],
            "query_token": query_tokens[:, None],
            "row_word": block.by_row(query_tokens, following)[..., None],
            "key_position": keys,
            "key_token": key_tokens,
            "weight": block.weights,
        }
        start, stop = stop, stop + block.weights.size
        for name, value in values.items():
            columns[name][start:stop].reshape(block.weights.shape)[...] = value
    names = list(tokens)
    return columns, {"attention": list(kinds)} | dict.fromkeys(TOKENS, names)


def tokens_of(trace: HasAttention) -> dict[str, np.ndarray]:
    """The tokens of each text by its title, "source" and "target"."""
    return {side.title: np.array(trace.texts[name].tokens) for name, side in trace.sides.items()}
