"""The weights as tables: as the model used them, without the display options.

Each function takes a View and returns bytes. Parquet and NPZ contain the settings; a CSV file
cannot, and comes with `settings_json`.
"""

import io

import numpy as np

from headlight.app.export.view import View, settings_json
from headlight.model.probing.rows import KindWeights, followed, kind_weights, tokens_of
from headlight.model.surveys.tables import CsvFile, NpzFile, ParquetFile

# Bytes per weight in each file format, roughly, and the largest file.
BYTES = {"csv": 45, "parquet": 5, "npz": 4}
LARGEST_FILE = 256 * 2**20


def weights_of(view: View, one_head: bool) -> list[KindWeights]:
    """All weights, or with `one_head` only those of the selected head."""
    if not one_head:
        return list(kind_weights([view.trace], [1]))
    kind, layer, head = view.head
    trace = view.trace
    query, key = (text.tokens for text in trace.texts_of(kind))
    selected = np.s_[layer : layer + 1, head : head + 1]
    words = followed(trace, kind, selected)
    layers = [trace.kinds[kind][layer].layer]
    return [KindWeights(1, kind, layers, trace.attention[kind][selected], query, key, head, *words)]


def size(view: View, ending: str, one_head: bool) -> int:
    """The size of a table in bytes, roughly."""
    kind, *_ = view.head
    attention = view.trace.attention
    count = sum(w.size for w in attention.values())
    return BYTES[ending] * (attention[kind][0, 0].size if one_head else count)


def csv(view: View, one_head: bool = False) -> bytes:
    """CSV, safe to open in a spreadsheet (headlight.model.surveys.tables.CsvFile)."""
    file = io.BytesIO()
    CsvFile(file).write(weights_of(view, one_head))
    return file.getvalue()


def parquet(view: View, one_head: bool = False) -> bytes:
    """See headlight.model.surveys.tables.ParquetFile. The settings are JSON in the file's metadata,
    under "headlight"."""
    file = io.BytesIO()
    table = ParquetFile(file)
    table.write(weights_of(view, one_head))
    assert table.writer is not None
    table.writer.add_key_value_metadata({"headlight": settings_json(view).decode()})
    table.close()
    return file.getvalue()


def npz(view: View, one_head: bool = False) -> bytes:
    """For np.load: "encoder", "decoder", "cross" (layers, heads, query, key), "source" and
    "target" (tokens), "settings" (JSON). Of one head: its (1, 1, query, key)."""
    file = io.BytesIO()
    arrays = NpzFile(file)
    attention = view.trace.attention
    if one_head:
        (head,) = weights_of(view, one_head)
        attention = {head.kind: head.weights}
    for name, weights in attention.items():
        arrays.write(name, weights)
    for name, tokens in tokens_of(view.trace).items():
        arrays.write(name, tokens)
    arrays.write("settings", np.array(settings_json(view).decode()))
    arrays.close()
    return file.getvalue()
