"""Figures for a paper: one head or all heads of a trace, as wide as a column or a page."""

from headlight.app.export import figures
from headlight.app.text import part_names
from headlight.model.analysis.reading import Reading
from headlight.model.probing.trace import Trace
from headlight.model.recording.recording import Recording

WIDTHS = {"column": 3.25, "page": 6.75}  # inches, of most conferences' styles
LEAST_LETTERS = 4.5  # points; smaller ones cannot be read in print


class TooNarrow(ValueError):
    """A figure whose letters would be too small."""


def inches_of(width: str) -> float:
    """Of “column”, “page”, “3.3in” or “84mm”; 0 for “”, as it comes. Raises ValueError."""
    units = {"in": 1.0, "mm": 1 / 25.4, "cm": 1 / 2.54, "pt": 1 / 72}
    if not width or width in WIDTHS:
        return WIDTHS.get(width, 0.0)
    number, unit = width[:-2], width[-2:]
    try:
        inches = float(number) * units[unit]
    except (KeyError, ValueError):
        inches = 0.0
    if not 0.5 <= inches <= 40:
        raise ValueError(
            f"“{width}” is no width; write column, page, or a size like 3.3in or 84mm."
        )
    return inches


def figure(
    trace: Trace, ending: str, kind: str, layer: int, head: int, *, whole: bool = False,
    width: str = "", reading: Reading = Reading(),
) -> bytes:  # fmt: skip
    """One head (counted from 0, as in the trace's arrays), or with `whole` all heads of its kind,
    as "svg", "png" or "pdf". Raises ValueError."""
    inches = inches_of(width)
    if whole:
        return _whole(trace, ending, kind, reading, inches)
    return _head(trace, ending, kind, layer, head, reading, inches)


def _notes(trace: Trace) -> list[str]:
    origin = trace.origin if isinstance(trace, Recording) else ""
    return [note for note in (origin, "; ".join(map(str, trace.run.changes))) if note]


def _head(trace, ending, kind, layer, head, reading, inches) -> bytes:
    picture = reading.apply(trace.attention[kind], layer, head, *trace.texts_of(kind))
    query, key = part_names.axes(trace, kind, layer, head, reading)
    name = part_names.picture_name(trace, kind, layer, head, reading.average)
    notes = [*_notes(trace), *picture.notes]
    return figures.head(ending, "{}", name, notes, picture.weights, query, key, inches)


def _whole(trace, ending, kind, reading, inches) -> bytes:
    shown = reading.each(trace.attention[kind], *trace.texts_of(kind))
    query, key = (side.title for side in trace.sides_of(kind))
    tiles = figures.Tiles(
        part_names.kind_name(trace, kind), query, key, shown.weights,
        [site.layer + 1 for site in trace.kinds[kind]],
        range(shown.weights.shape[0] * shown.weights.shape[1]),
    )  # fmt: skip
    texts = {query.capitalize(): shown.query, key.capitalize(): shown.key}
    name = part_names.kind_name(trace, kind)
    return figures.grid(ending, "{}", name, _notes(trace), [tiles], texts, "weight", inches)


__all__ = ["TooNarrow", "figure", "inches_of"]
