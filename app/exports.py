"""What is on the screen as files: pictures, tables and a page of its own. No Streamlit.

Each function takes a View and gives bytes, and every file says what it is of: pictures and tables
carry the settings; a CSV file, which has no place for them, goes with `settings_json`.
"""

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

import numpy as np

from app import figures, labels, settings
from app.components.grid_page import grid_page
from app.components.packing import Look, pack_trace, shrink
from app.pages import HOME, PAGES
from model.analysis.reading import LabelledWeights, Reading
from model.corpus.tables import CsvFile, NpzFile, ParquetFile
from model.probing.rows import KindWeights, kind_weights, tokens_of
from model.probing.trace import Trace

LEGENDS = {
    "linear": "weight",
    "square root": "√weight",
    "per row": "÷ row’s largest",
}
HATCHED = "Hatched: masked, may not look there."
# Bytes that a weight takes in each kind of file, roughly, and how many bytes a file may have.
BYTES = {"csv": 45, "parquet": 5, "npz": 4}
LARGEST_FILE = 256 * 2**20


@dataclass(frozen=True)
class View:
    """A trace and how it is looked at. `settings` are those of the sidebar and of `page`, the one
    that a link leads to; `look` holds the head in focus, counted from 0."""

    trace: Trace
    settings: Mapping
    reading: Reading
    look: Look
    page: str = HOME

    @property
    def head(self) -> tuple[str, int, int]:
        """Kind, layer and head in focus."""
        return self.look.focus["kind"], self.look.focus["layer"], self.look.focus["head"]

    @property
    def name(self) -> str:
        return labels.picture_name(self.trace, *self.head, self.reading.average)

    @property
    def picture(self) -> LabelledWeights:
        """The head in focus, or the mean, as it is read."""
        kind, layer, head = self.head
        weights = self.trace.attention[kind]
        return self.reading.apply(weights, layer, head, *self.trace.texts_of(kind))


def stem(view: View, what: str = "") -> str:
    """The name of a file without its ending: model, then `what`, else kind, layer and head."""
    model, step = view.settings["model"], view.settings["step"]
    kind, layer, head = view.head
    number = labels.layer_number(view.trace, kind, layer)
    parts = {
        "": f"layer-{number}-head-{head + 1}",
        "heads": f"layer-{number}-mean-over-heads",
        "layers": f"head-{head + 1}-mean-over-layers",
        "both": "mean-over-all-heads",
    }
    step = f"-step-{step}" if step.isdecimal() else ""
    name = f"{model}{step}-{what or f'{kind}-{parts[view.reading.average]}'}"
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-.") or "headlight"


def settings_json(view: View) -> bytes:
    return json.dumps(dict(view.settings), indent=2, ensure_ascii=False).encode("utf-8")


def permalink(chosen: Mapping, page: str) -> str:
    """What follows the app's address to come back to the view."""
    as_text = {
        key: settings.SETTINGS[key].as_text(value) for key, value in chosen.items() if value != ""
    }
    return f"{PAGES[page].path}?{urlencode(as_text, doseq=True)}"


def about(view: View) -> list[str]:
    """Sentences below the title of a picture: the model, and what was changed."""
    model = f"Model {view.settings['model']}"
    return [" · ".join([model, *settings.headers(view.settings)])]


# Pictures


def head(view: View, ending: str) -> bytes:
    """The head in focus with its pieces, as "svg", "png" or "pdf"."""
    picture, (kind, layer, number) = view.picture, view.head
    query, key = labels.axes(view.trace, kind)
    query, key = replace(query, labels=picture.query), replace(key, labels=picture.key)
    whole = replace(view.reading, least=0.0)  # a small weight is hidden, but not masked
    attention, texts = view.trace.attention[kind], view.trace.texts_of(kind)
    weights = whole.apply(attention, layer, number, *texts).weights
    weights = _scaled(weights, "linear", view.reading.least)
    lines = [*about(view), *picture.notes, *([] if weights.all() else [HATCHED])]
    return figures.head(ending, _note(view), view.name, lines, weights, query, key)


def grid(view: View, ending: str) -> bytes:
    """All heads, or those of the kind in focus where the grid shows no others."""
    focus, layer, head = view.head
    shown = replace(view.reading, average="", least=0.0)
    least = view.reading.least
    parts, texts, said = [], {}, []
    for kind, weights in view.trace.attention.items():
        if view.look.show == "one kind" and kind != focus:
            continue
        picture = shown.each(weights, *view.trace.texts_of(kind))
        said = picture.notes
        if least:
            said = [*said, f"Weights under {least:g} are drawn as 0."]
        asks, looked_at = (side.title for side in view.trace.sides_of(kind))
        texts |= {asks.capitalize(): picture.query, looked_at.capitalize(): picture.key}
        every = [-(-size // figures.MOST_CELLS) or 1 for size in picture.weights.shape[2:]]
        if max(every) > 1:
            said = [*said, f"Of this long text a cell stands for up to {every[0]} × {every[1]} "
                    "weights and shows the largest."]  # fmt: skip
        order = view.look.order.get(kind)
        tiles = order["tiles"] if order else range(weights.shape[0] * weights.shape[1])
        parts.append(
            figures.Tiles(
                name=labels.kind_name(view.trace, kind),
                asks=asks,
                looked_at=looked_at,
                weights=_scaled(shrink(picture.weights, *every), view.look.scale, least),
                places=np.argsort(tiles).tolist(),
                values=order["values"] if order else (),
                focus=layer * weights.shape[1] + head if kind == focus else None,
                numbers=[site.layer + 1 for site in view.trace.kinds[kind]],
            )
        )
    title = "What every head looks at"
    legend = LEGENDS[view.look.scale]
    whole = all(part.weights.all() for part in parts)
    lines = [*about(view), *said, *([] if whole else [HATCHED])]
    return figures.grid(ending, _note(view), title, lines, parts, texts, legend)


def _note(view: View) -> str:
    """The settings for a file's metadata, of letters that all of them take."""
    return json.dumps(dict(view.settings))


def _scaled(weights: np.ndarray, scale: str, least: float) -> np.ndarray:
    """What is 0 stays so and was masked; what is under `least` becomes nearly 0."""
    weights = np.where((weights > 0) & (weights < least), 1e-9, weights)
    if scale == "square root":
        return np.sqrt(weights)
    if scale == "per row":
        largest = weights.max(axis=-1, keepdims=True, initial=0)
        return weights / np.where(largest > 0, largest, 1)
    return weights


def page(view: View) -> bytes:
    """The grid and the head in focus as one HTML file that needs nobody."""
    title = f"{view.settings['model']}: what every head looks at"
    packed = pack_trace(view.trace, view.reading)
    return grid_page(packed, view.look, title, focus=True).encode("utf-8")


# Tables: the weights as the model used them, whatever the pictures hide or merge


def weights_of(view: View, one: bool) -> list[KindWeights]:
    """All weights, or with `one` those of the head in focus."""
    if not one:
        return list(kind_weights([view.trace], [1]))
    kind, layer, head = view.head
    query, key = (text.tokens for text in view.trace.texts_of(kind))
    weights = view.trace.attention[kind][layer : layer + 1, head : head + 1]
    layers = [view.trace.kinds[kind][layer].layer]
    return [KindWeights(1, kind, layers, weights, query, key, head)]


def size(view: View, ending: str, one: bool) -> int:
    """About how many bytes a table will have."""
    kind, *_ = view.head
    attention = view.trace.attention
    count = sum(w.size for w in attention.values())
    return BYTES[ending] * (attention[kind][0, 0].size if one else count)


def csv(view: View, one: bool = False) -> bytes:
    """See model.tables.CsvFile; it opens safely in a spreadsheet."""
    file = io.BytesIO()
    CsvFile(file).write(weights_of(view, one))
    return file.getvalue()


def parquet(view: View, one: bool = False) -> bytes:
    """See model.tables.ParquetFile. The settings are JSON in the file's metadata, "headlight"."""
    file = io.BytesIO()
    table = ParquetFile(file)
    table.write(weights_of(view, one))
    table.writer.add_key_value_metadata({"headlight": settings_json(view).decode()})
    table.close()
    return file.getvalue()


def npz(view: View, one: bool = False) -> bytes:
    """For np.load: "encoder", "decoder", "cross" (layers, heads, query, key), "source" and
    "target" (pieces), "settings" (JSON). Of one head: its (1, 1, query, key)."""
    file = io.BytesIO()
    arrays = NpzFile(file)
    attention = view.trace.attention
    if one:
        (block,) = weights_of(view, one)
        attention = {block.kind: block.weights}
    for name, weights in attention.items():
        arrays.write(name, weights)
    for name, pieces in tokens_of(view.trace).items():
        arrays.write(name, pieces)
    arrays.write("settings", np.array(settings_json(view).decode()))
    arrays.close()
    return file.getvalue()
