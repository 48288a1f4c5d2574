"""Files of many sentences' attention weights. Layers, heads, positions and sentences count from 1
there, as on the screen."""

import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO

import numpy as np

from headlight.model.probing.rows import (
    MAX_ROWS_IN_MEMORY,
    ROW_COLUMNS,
    HasAttention,
    KindWeights,
    kind_weights,
    rows,
    tokens_of,
)

# At the start of a CSV: spreadsheets read one without it in the machine's own code page.
BYTE_ORDER_MARK = "\ufeff"
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def together(items: Iterable, size: Callable[..., int], most: int) -> Iterator[list]:
    """Items in their order, a few at a time: of at most `most` in all, or a larger one alone."""
    group, total = [], 0
    for item in items:
        if group and total + size(item) > most:
            yield group
            group, total = [], 0
        group.append(item)
        total += size(item)
    if group:
        yield group


def spreadsheet_safe(text: str) -> str:
    """Text safe for spreadsheets: an apostrophe is put before anything that starts like a formula,
    with = + - @ (or their wide forms), a tab or a line break."""
    return "'" + text if text.startswith(FORMULAS) else text


class NpzFile:
    """For each sentence its weights by kind, "7/encoder", "7/decoder" and "7/cross" (layers, heads,
    query, key), and its tokens, "7/source" and "7/target". np.load reads one at a time; no
    pickles."""

    def __init__(self, file: BinaryIO):
        self.zip = zipfile.ZipFile(file, "w")

    def add(self, traces: Sequence[HasAttention], numbers: Sequence[int]) -> None:
        for number, trace in zip(numbers, traces, strict=True):
            for name, array in {**trace.attention, **tokens_of(trace)}.items():
                self.write(f"{number}/{name}", array)

    def write(self, name: str, array: np.ndarray) -> None:
        entry = zipfile.ZipInfo(f"{name}.npy")  # without the time of day
        with self.zip.open(entry, "w", force_zip64=True) as file:
            np.lib.format.write_array(file, array, allow_pickle=False)

    def close(self) -> None:
        self.zip.close()


class ParquetFile:
    """The table of `rows`, its text as dictionaries: pandas reads categoricals."""

    def __init__(self, file: BinaryIO):
        self.file, self.writer = file, None

    def add(self, traces: Sequence[HasAttention], numbers: Sequence[int]) -> None:
        self.write(kind_weights(traces, numbers))

    def write(self, some: Iterable[KindWeights]) -> None:
        for group in together(some, lambda block: block.weights.size, MAX_ROWS_IN_MEMORY):
            self._write(*rows(group))

    def _write(self, columns: dict[str, np.ndarray], names: dict[str, list[str]]) -> None:
        import pyarrow as pa  # imported late: CSV and NPZ do not need it
        from pyarrow.parquet import ParquetWriter

        coded = {name: pa.array(values) for name, values in columns.items()}
        text = {n: pa.DictionaryArray.from_arrays(coded[n], names[n]) for n in names}
        table = pa.table(coded | text)
        if self.writer is None:
            # Numbers repeat so regularly that plain ones compress as well, in half the time.
            self.writer = ParquetWriter(
                self.file,
                table.schema,
                # Its types know of no lists.
                use_dictionary=list(names),  # pyright: ignore[reportArgumentType]
                write_statistics=["sentence"],  # pyright: ignore[reportArgumentType]
                data_page_version="2.0",
            )
        self.writer.write_table(table)

    def close(self) -> None:
        if self.writer:
            self.writer.close()


class CsvFile:
    """The table of `rows`, UTF-8 with its mark and a line of column names; weights have eight
    decimals, tokens are `spreadsheet_safe`."""

    def __init__(self, file: BinaryIO):
        self.file = file
        file.write(f"{BYTE_ORDER_MARK}{','.join(ROW_COLUMNS)}\n".encode())

    def add(self, traces: Sequence[HasAttention], numbers: Sequence[int]) -> None:
        self.write(kind_weights(traces, numbers))

    def write(self, some: Iterable[KindWeights]) -> None:
        for block in some:
            self.file.write(csv_lines(block))

    def close(self) -> None:
        pass


def csv_lines(block: KindWeights) -> bytes:
    """The lines of a block. Their parts repeat, so each is written once and copied to its lines,
    filled up with zero bytes to one length; then all zero bytes are taken out."""
    layers, heads, _, _ = block.weights.shape
    head = _bytes(
        f"{block.sentence},{block.kind},{layer + 1},{block.first_head + head + 1},"
        for layer in block.layers
        for head in range(heads)
    )
    query, key = (
        _bytes(f"{i},{csv_text(token)}," for i, token in enumerate(side, start=1))
        for side in (block.query, block.key)
    )
    words = [_bytes(map(csv_text, side)) for side in (block.query, block.following)]
    row_words = np.char.add(block.by_row(*words), b",")
    digits = np.rint(block.weights.astype(np.float64) * 1e8).astype(np.uint32)
    parts = [
        head.reshape(layers, heads, 1, 1),
        query[:, None],
        row_words[..., None],
        key,
        FIRST_DIGITS[digits // 10**4],
        LAST_DIGITS[digits % 10**4],
    ]
    lines = np.empty(block.weights.shape, [("", part.dtype) for part in parts])
    for name, part in zip(lines.dtype.names or (), parts, strict=True):
        lines[name] = part
    return lines.tobytes().translate(None, b"\0")


def csv_text(text: str) -> str:
    """A token as CSV has it, safe in a spreadsheet."""
    text = spreadsheet_safe(text)
    quoted = any(character in text for character in ',"\r\n')
    return '"' + text.replace('"', '""') + '"' if quoted else text


def _bytes(texts: Iterable[str]) -> np.ndarray:
    return np.array([text.encode() for text in texts])


FIRST_DIGITS = _bytes(f"{i // 10**4}.{i % 10**4:04}" for i in range(10**4 + 1))
LAST_DIGITS = _bytes(f"{i:04}\n" for i in range(10**4))
TABLE_FILES = {".npz": NpzFile, ".csv": CsvFile, ".parquet": ParquetFile}


@contextmanager
def table(file: BinaryIO, ending: str) -> Iterator[NpzFile | CsvFile | ParquetFile]:
    """A writer for a file with one of the extensions; a context manager that closes it. After an
    exception, errors on closing are suppressed: on a full disk closing fails again, and the first
    error is the one to report."""
    writer = TABLE_FILES[ending](file)
    try:
        yield writer
    except BaseException:
        with suppress(Exception):
            writer.close()
        raise
    writer.close()
