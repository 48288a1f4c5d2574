"""The selected head and the grid of all heads as pictures, and both as a page of HTML.

Each function takes a View and returns bytes; every file contains the settings it was made with.
"""

import json
from dataclasses import replace

import numpy as np

from headlight.app.components.packing import shrink
from headlight.app.components.stage_page import MANY, stage_page
from headlight.app.export import figures
from headlight.app.export.view import View
from headlight.app.state import settings
from headlight.app.text import part_names

LEGENDS = {
    "linear": "weight",
    "square root": "√weight",
    "per row": "÷ row’s maximum",
}


def about(view: View) -> list[str]:
    """Sentences below the title of a picture: the model and the changes."""
    return [" · ".join([f"Model {view.settings['model']}", *_done(view)])]


def _done(view: View) -> list[str]:
    """The settings that differ from those at the start."""
    return settings.headers(view.settings)


def head(view: View, ending: str) -> bytes:
    """The selected head with its tokens, as "svg", "png" or "pdf"."""
    picture, (kind, layer, number) = view.picture, view.head
    query, key = part_names.axes(view.trace, view.head, view.reading)
    whole = replace(view.reading, least=0.0)  # a small weight is hidden, not masked
    attention, texts = view.trace.attention[kind], view.trace.texts_of(kind)
    weights = whole.apply(attention, layer, number, *texts).weights
    weights = _scaled(weights, "linear", view.reading.least)
    notes = [*about(view), *picture.notes]
    colours = view.settings["colours"]
    return figures.head(ending, _settings(view), view.name, notes, weights, query, key, colours)


def grid(view: View, ending: str) -> bytes:
    """All heads, or those of the selected kind if the grid shows only these."""
    focus, layer, head = view.head
    shown = replace(view.reading, average="", least=0.0)
    least = view.reading.least
    parts, texts, notes = [], {}, []
    for kind, weights in view.trace.attention.items():
        if view.look.show == "one kind" and kind != focus:
            continue
        picture = shown.each(weights, *view.trace.texts_of(kind))
        notes = picture.notes
        if least:
            notes = [*notes, f"Weights under {least:g} are drawn as 0."]
        query, key = (side.title for side in view.trace.sides_of(kind))
        texts |= {query.capitalize(): picture.query, key.capitalize(): picture.key}
        every = [-(-size // figures.MOST_CELLS) or 1 for size in picture.weights.shape[2:]]
        if max(every) > 1:
            notes = [
                *notes,
                "This text is long: each cell covers up to "
                f"{every[0]} × {every[1]} weights and shows the "
                "largest.",
            ]
        parts.append(
            figures.Tiles(
                name=part_names.kind_name(view.trace, kind),
                query=query,
                key=key,
                weights=_scaled(shrink(picture.weights, *every), view.look.scale, least),
                focus=layer * weights.shape[1] + head if kind == focus else None,
                off=view.look.off.get(kind, ()),
                marked=view.look.marked.get(kind, ()),
                numbers=[site.layer + 1 for site in view.trace.kinds[kind]],
            )
        )
    title = "What every head attends to"
    legend = LEGENDS[view.look.scale]
    notes = [*about(view), *notes]
    colours = view.settings["colours"]
    return figures.grid(ending, _settings(view), title, notes, parts, texts, legend, colours)


def _settings(view: View) -> str:
    """The settings for a file's metadata, in characters that all formats accept."""
    return json.dumps(dict(view.settings))


def _scaled(weights: np.ndarray, scale: str, least: float) -> np.ndarray:
    """Weights below `least` become nearly 0; exact zeros, which mean masked, stay."""
    weights = np.where((weights > 0) & (weights < least), 1e-9, weights)
    if scale == "square root":
        return np.sqrt(weights)
    if scale == "per row":
        largest = weights.max(axis=-1, keepdims=True, initial=0)
        return weights / np.where(largest > 0, largest, 1)
    return weights


def page(view: View) -> bytes:
    """The stage, at the selected head, as one HTML file that needs no server and no network."""
    title = f"{view.settings['model']}: what every head attends to"
    return stage_page(
        view.trace,
        view.head,
        title,
        reading=view.reading,
        depth="head",
        most=MANY,
        colours=view.settings["colours"],
        done=_done(view),
        off=view.look.off,
        hidden=view.look.hidden,
    ).encode("utf-8")
