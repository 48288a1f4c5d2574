"""Attention weights as rows of a table, and files of many sentences' weights.

Layers, heads, positions and sentences count from 1 in tables and files, as on the screen.
"""

import zipfile
from collections.abc import Sequence
from typing import BinaryIO, Protocol

import numpy as np

from model.tokenizer import Encoding

SIDES = {  # kind → who asks, who is looked at
    "encoder": ("src", "src"),
    "decoder": ("tgt", "tgt"),
    "cross": ("tgt", "src"),
}
COLUMNS = {
    "sentence": np.int32,
    "attention": np.int8,
    "layer": np.int16,
    "head": np.int16,
    "query_position": np.int16,
    "query_piece": np.int32,
    "key_position": np.int16,
    "key_piece": np.int32,
    "weight": np.float32,
}
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class Seen(Protocol):
    """What of a Trace a table is made of."""

    src: Encoding
    tgt: Encoding
    attention: dict[str, np.ndarray]


def rows(
    traces: Sequence[Seen], numbers: Sequence[int]
) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    """One row for each weight of each head of each trace, by column, see COLUMNS.

    Columns of text hold codes: the second value is what they stand for. In the order of traces,
    kinds, layers, heads, queries and keys. `numbers` are what to call the traces.
    """
    count = sum(weights.size for trace in traces for weights in trace.attention.values())
    columns = {name: np.empty(count, dtype) for name, dtype in COLUMNS.items()}
    pieces: dict[str, int] = {}  # in the order in which they were met
    start = 0
    for number, trace in zip(numbers, traces, strict=True):
        codes = {
            side: [pieces.setdefault(p, len(pieces)) for p in getattr(trace, side).pieces]
            for side in ("src", "tgt")
        }
        for kind, weights in trace.attention.items():
            layers, heads, queries, keys = (np.arange(1, n + 1) for n in weights.shape)
            asks, looked_at = SIDES[kind]
            values = {
                "sentence": number,
                "attention": list(SIDES).index(kind),
                "layer": layers[:, None, None, None],
                "head": heads[:, None, None],
                "query_position": queries[:, None],
                "query_piece": np.array(codes[asks])[:, None],
                "key_position": keys,
                "key_piece": codes[looked_at],
                "weight": weights,
            }
            stop = start + weights.size
            for name, value in values.items():
                columns[name][start:stop].reshape(weights.shape)[...] = value
            start = stop
    names = list(pieces)
    return columns, {"attention": list(SIDES), "query_piece": names, "key_piece": names}


def spreadsheet_safe(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe goes before what begins like
    one, with = + - @ (or their wide forms), a tab or the end of a line."""
    return "'" + text if text.startswith(FORMULAS) else text


class NpzFile:
    """For each sentence the arrays "7/encoder", "7/decoder" and "7/cross" (layers, heads, query,
    key), and its pieces in "7/source" and "7/target". np.load reads one at a time; no pickles."""

    def __init__(self, file: BinaryIO):
        self.zip = zipfile.ZipFile(file, "w")

    def add(self, traces: Sequence[Seen], numbers: Sequence[int]) -> None:
        for number, trace in zip(numbers, traces, strict=True):
            texts = {"source": trace.src, "target": trace.tgt}
            pieces = {name: np.array(text.pieces) for name, text in texts.items() if text.ids}
            for name, array in (trace.attention | pieces).items():
                with self.zip.open(f"{number}/{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)

    def close(self) -> None:
        self.zip.close()


class ParquetFile:
    """The rows of `rows`, text as dictionaries: pandas reads categoricals."""

    def __init__(self, file: BinaryIO):
        self.file, self.writer = file, None

    def add(self, traces: Sequence[Seen], numbers: Sequence[int]) -> None:
        from pyarrow.parquet import ParquetWriter

        columns, names = rows(traces, numbers)
        table = arrow_table(columns, names)
        # Numbers repeat so regularly that plain ones compress as well, in half the time.
        self.writer = self.writer or ParquetWriter(
            self.file, table.schema, use_dictionary=list(names), write_statistics=["sentence"]
        )
        self.writer.write_table(table)

    def close(self) -> None:
        if self.writer:
            self.writer.close()


class CsvFile:
    """The rows of `rows`, with a line of column names. A weight has as many digits as tell it
    from every other; pieces are `spreadsheet_safe`."""

    def __init__(self, file: BinaryIO):
        self.file, self.begun = file, False

    def add(self, traces: Sequence[Seen], numbers: Sequence[int]) -> None:
        from pyarrow import csv

        columns, names = rows(traces, numbers)
        safe = {name: [spreadsheet_safe(text) for text in texts] for name, texts in names.items()}
        options = csv.WriteOptions(include_header=not self.begun)
        csv.write_csv(arrow_table(columns, safe), self.file, options)
        self.begun = True

    def close(self) -> None:
        pass


FILES = {".npz": NpzFile, ".csv": CsvFile, ".parquet": ParquetFile}


def arrow_table(columns: dict[str, np.ndarray], names: dict[str, list[str]]):
    """A pyarrow.Table of what `rows` gives."""
    import pyarrow as pa

    def column(name):
        values = pa.array(columns[name])
        return pa.DictionaryArray.from_arrays(values, names[name]) if name in names else values

    return pa.table({name: column(name) for name in columns})
