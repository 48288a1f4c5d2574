"""Figures for a paper: one head or all heads of a kind, as wide as a column or a page, and a
caption."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral
from pathlib import Path

import numpy as np

from headlight.app.components.packing import shrink
from headlight.app.export import figures
from headlight.app.text import part_names
from headlight.app.text.axis import Axis
from headlight.app.theme import MASKED
from headlight.model.analysis.alignment import WordWeights
from headlight.model.analysis.reading import LabelledWeights, Reading
from headlight.model.files import replace_file
from headlight.model.messages import MOST_OF_REASON, reason, short
from headlight.model.probing.sites import Place
from headlight.model.probing.trace import Trace
from headlight.model.recording.recording import Recording
from headlight.model.recording.texts import as_typed

WIDTHS = {"column": 3.25, "page": 6.75}  # inches, of most conferences' styles
UNITS = {"in": 1.0, "mm": 1 / 25.4, "cm": 1 / 2.54, "pt": 1 / 72}
NARROWEST, WIDEST = 0.5, 40  # inches
ENDINGS = ".svg", ".pdf", ".png"
MOST_OF_TEXT = 200  # characters of a text in a caption


class CannotPrint(ValueError):
    """A figure that cannot be drawn or written, in a sentence."""


def inches_of(width: str) -> float:
    """Of “column”, “page”, “3.3in” or “84mm”. Raises CannotPrint."""
    if width in WIDTHS:
        return WIDTHS[width]
    number, unit = str(width)[:-2], str(width)[-2:]
    try:
        inches = float(number) * UNITS[unit]
    except (KeyError, ValueError):
        inches = 0.0
    if not NARROWEST <= inches <= WIDEST:
        raise CannotPrint(
            f"“{short(width)}” is no width. Write column, page, or a size such as 3.3in or 84mm, "
            f"from {NARROWEST}in to {WIDEST}in."
        )
    return inches


def ending_of(path: Path, endings: Sequence[str] = ENDINGS) -> str:
    """Without its point. Raises CannotPrint for one that no figure has."""
    if path.suffix.lower() not in endings:
        raise CannotPrint(f"{short(path)} must end in {', '.join(endings)}.")
    return path.suffix.lower()[1:]


def write(path: Path, content: bytes | str) -> None:
    """Raises CannotPrint."""
    try:
        replace_file(path, content)
    except OSError as error:
        raise CannotPrint(f"{short(path)} cannot be written: {reason(error)}.") from None


def place_of(
    trace: Trace, kind: str | None = None, layer: int | None = None, head: int | None = None
) -> tuple[str, int, int]:
    """A head, given by its numbers on the screen, in the trace's arrays; without a kind it is of
    the last one, without numbers the first. Raises ValueError for one that is not there."""
    kind = list(trace.attention)[-1] if kind is None else kind
    numbers = [site.layer + 1 for site in trace.kinds.get(kind, ())]
    layer = next(iter(numbers), 1) if layer is None else layer
    head = 1 if head is None else head
    is_number = isinstance(head, Integral)
    if layer not in numbers or not is_number or not 1 <= head <= trace.attention[kind].shape[1]:
        there_are = ", ".join(
            f"{name} ({weights.shape[0]} layers of {weights.shape[1]} heads)"
            for name, weights in trace.attention.items()
        )
        which = f"{short(kind)} layer {short(layer)} head {short(head)}"
        raise ValueError(f"There is no {which}; there are {short(there_are, MOST_OF_REASON)}.")
    return kind, numbers.index(layer), head - 1


class Printed(ABC):
    """What can be printed, with a caption."""

    @abstractmethod
    def drawn(self, ending: str, inches: float) -> bytes:
        """As "svg", "pdf" or "png", this wide."""

    @abstractmethod
    def caption(self) -> str:
        """What the figure shows, in sentences."""

    def save(self, path: str | Path, width: str = "column") -> str:
        """Write the figure as .svg, .pdf or .png. Returns a caption for it. Raises CannotPrint, and
        TooNarrow where its letters could not be read."""
        path, inches = Path(path), inches_of(width)
        write(path, self.drawn(ending_of(path), inches))
        return self.caption()


@dataclass(frozen=True)
class Figure(Printed):
    """Weights of a trace, or what they are more than those of `minus`, another trace over the same
    texts. `whole`: all heads of the kind; `layer` and `head` index the trace's arrays; `colours`: a
    name in theme.WEIGHTS."""

    trace: Trace
    kind: str
    layer: int
    head: int
    minus: Trace | None = None
    whole: bool = False
    numbers: bool = False
    reading: Reading = Reading()
    colours: str = "ink"

    def __post_init__(self):
        if self.minus is not None:
            check_comparable(self.trace, self.minus)

    def cells(self) -> tuple[np.ndarray, Axis, Axis]:
        """What the head's cells hold, (query, key), and their axes."""
        weights = self._read(self.trace).weights
        if self.minus is not None:
            weights = weights - self._read(self.minus).weights
        return weights, *part_names.axes(self.trace, self.place, self.reading)

    def drawn(self, ending: str, inches: float) -> bytes:
        trace, kind = self.trace, self.kind
        picture, signed = self._picture()
        about = json.dumps({"caption": self.caption()})
        legend = "difference" if self.minus else "weight"
        if self.whole:
            query, key = (side.title for side in trace.sides_of(kind))
            numbers = [site.layer + 1 for site in trace.kinds[kind]]
            weights = shrink(picture.weights, *_every(picture.weights))
            tiles = figures.Tiles(query, key, weights, numbers)
            texts = {query.capitalize(): picture.query, key.capitalize(): picture.key}
            name = part_names.kind_name(trace, kind)
            return figures.grid(
                ending, about, name, tiles, texts, legend, self.colours, inches, signed
            )
        query, key = part_names.axes(trace, self.place, self.reading)
        return figures.head(
            ending, about, self._name(), picture.weights, query, key, self.colours,
            inches, signed, self.numbers,
        )  # fmt: skip

    def caption(self) -> str:
        """Which weights, of which model, texts and changes."""
        trace, kind = self.trace, self.kind
        name = self._name()
        name = name[:1].lower() + name[1:]
        of = f", of the model “{short(trace.origin, MOST_OF_TEXT)}”" if trace.origin else ""
        texts = [short(as_typed(text), MOST_OF_TEXT) for text in trace.texts.values()]
        ends = "" if texts[-1].endswith((".", "!", "?", "…")) else "."
        picture, signed = self._picture()
        query, key = (side.title for side in trace.sides_of(kind))
        what = "Change in the weights" if self.minus else "Weights"
        quoted = " → ".join(f"“{text}”" for text in texts)
        said = [f"{what} of {name}{of}, on {quoted}{ends}"]
        if self.minus:
            said.append(
                f"Weights {state_of(trace)} minus weights {state_of(self.minus)}, from "
                f"{-signed:.2g} to {signed:.2g}; blue is more, red is less.".replace("-", "−")
            )
        elif state_of(trace) != UNCHANGED:
            said.append(f"The model runs {state_of(trace)}.")
        if self.whole:
            said.append("Layers from top to bottom, heads from left to right.")
            rows, columns = _every(picture.weights)
            if max(rows, columns) > 1:
                said.append(f"Each cell shows the largest of up to {rows} × {columns} weights.")
        said.append(f"Rows: queries ({query}); columns: keys ({key}).")
        if (picture.weights == 0).any():
            said.append(MASKED["cells"])
        notes = trace.notes if isinstance(trace, Recording) else ()
        return " ".join([*said, *picture.notes, *notes])

    def _name(self) -> str:
        if self.whole:
            return f"{part_names.kind_name(self.trace, self.kind)}, all heads"
        return part_names.picture_name(self.trace, self.place, self.reading.average)

    @property
    def place(self) -> Place:
        return Place(self.kind, self.layer, self.head)

    def _picture(self) -> tuple[LabelledWeights, float]:
        """The weights that are drawn, and how far their scale reaches where they are a difference,
        else 0."""
        picture = self._read(self.trace)
        if self.minus is None:
            return picture, 0.0
        before = self._read(self.minus).weights
        signed = float(np.abs(picture.weights - before).max(initial=0)) or 1.0
        return replace(picture, weights=halved(picture.weights, before, signed)), signed

    def _read(self, trace: Trace) -> LabelledWeights:
        attention, texts = trace.attention[self.kind], trace.texts_of(self.kind)

        def read(least: float) -> LabelledWeights:
            reading = replace(self.reading, least=least)
            if self.whole:
                return replace(reading, average="").each(attention, *texts)
            return reading.apply(attention, self.layer, self.head, *texts)

        shown, hidden = read(0.0), self.reading.least
        if not hidden or self.minus is not None:
            return shown
        small = (shown.weights > 0) & (shown.weights < hidden)  # hidden, not masked
        return replace(read(hidden), weights=np.where(small, 1e-9, shown.weights))


@dataclass(frozen=True)
class AlignmentFigure(Printed):
    """Which source word each target word goes back to: what `Checkpoint.align` gives, with the name
    of its model."""

    words: WordWeights
    origin: str = ""

    def drawn(self, ending: str, inches: float) -> bytes:
        words = self.words
        if not words.weights.size:
            raise CannotPrint("There are no words to align.")
        columns = ("source", *words.source), ("target", *words.target)
        about = json.dumps({"caption": self.caption()})
        return figures.alignment(ending, about, "Word alignment", columns, words.weights, inches)

    def caption(self) -> str:
        words = self.words
        source, target = (
            short(" ".join(each), MOST_OF_TEXT) for each in (words.source, words.target)
        )
        of = f" by the model “{short(self.origin, MOST_OF_TEXT)}”" if self.origin else ""
        return (
            f"Word alignment{of}, from “{source}” (left) to “{target}” (right). Black: the source "
            "word with the largest weight for each target word; grey: the others from "
            f"{figures.LEAST_LINE:.0%} on. Thicker: larger weight."
        )


def _every(weights: np.ndarray) -> tuple[int, int]:
    """How many rows and columns of a long text one cell of a tile stands for."""
    rows, columns = (-(-size // figures.MOST_CELLS) or 1 for size in weights.shape[2:])
    return rows, columns


def halved(weights: np.ndarray, difference: np.ndarray, largest: float) -> np.ndarray:
    """A difference of weights mapped to 0 … 1: 0 for −`largest`, 0.5 for no difference. Exactly 0
    also where both are masked or one is missing."""
    none = np.isnan(difference) | ((weights == 0) & (difference == 0))
    return np.where(
        none, 0, np.maximum((1 + (weights - difference) / largest) / 2, np.float32(1e-6))
    )


def check_comparable(trace: Trace, minus: Trace) -> None:
    """Raises CannotPrint unless both have the same heads and read the same texts."""
    if [text.tokens for text in trace.texts.values()] != [
        text.tokens for text in minus.texts.values()
    ]:
        raise CannotPrint(
            "The two traces read different texts. Give both the same text and target."
        )
    shapes = ({kind: w.shape for kind, w in one.attention.items()} for one in (trace, minus))
    if next(shapes) != next(shapes):
        raise CannotPrint("The two traces have different kinds of attention, layers or heads.")


UNCHANGED = "as the model is"


def state_of(trace: Trace) -> str:
    """How the model was run, in words."""
    off = [field.name for field in fields(trace.masks) if not getattr(trace.masks, field.name)]
    said = [f"with {short('; '.join(map(str, trace.run.changes)), MOST_OF_TEXT)}"]
    said = said if trace.run.changes else []
    if off:
        said.append(f"without the mask{'s' * (len(off) > 1)} {', '.join(off)}")
    return " and ".join(said) or UNCHANGED
