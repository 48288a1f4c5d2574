"""Static figures of attention, written by Matplotlib as SVG, PNG or PDF, on white.

Positions and sizes are in pixels from the upper left corner; a PNG has SHARP × SHARP device pixels
for each, a PDF one point. Weights that are exactly 0 are masked and drawn hatched.
"""

import io
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice

import numpy as np

from headlight.app import theme
from headlight.app.text.axis import MOST_LABELS, Axis
from headlight.app.theme import DIFFERENCES, FONT, MASKED, WEIGHTS, ink_on, ramp, stops_of
from headlight.model.extras import of_extra
from headlight.model.pause import pause

INK, PAPER = theme.INK["light"], "#ffffff"  # as what is printed on
BORDER = "#c8c8c8"
GREY_LINE, LEAST_LINE = "#b0b0b0", 0.05  # between words, and the least weight that is drawn
HATCH_UNIT = 12  # pixels from line to line that Matplotlib leaves for one stroke of "/"
SHARP, MOST_SHARP = 2, 3_000_000  # pixels of tiles; larger pictures are not rendered sharper
LARGEST_CELL, SMALLEST_LETTERS, SMALL = 34, 8, 14
HEAD_ROOM, GRID_ROOM = 1000, 1500  # pixels
LEAST_TILE, LARGEST_TILE, TILE_GAP = 56, 170, 6  # smaller tiles are stacked instead
MOST_CELLS = 128  # cells along a side of a tile; more would not be visible
TILES_LEFT = 3 * FONT  # room for the names of layers
LONGEST_LABEL, MOST_LINES = 32, 4  # characters; lines of a text below the grid
FAMILY = "DejaVu Sans"  # the font that comes with Matplotlib
WRITTEN = {  # text stays text, and the same view gives the same bytes
    # font families, resolved where the SVG is opened
    "font.sans-serif": [FAMILY, "Verdana", "Arial"],
    "hatch.linewidth": MASKED["width"],
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "headlight",
}
LEAST_LETTERS, GOOD_LETTERS = 4.5, 6.5  # points of what is printed; smaller ones cannot be read
PRINTED_DPI = 300  # of a PNG, at least
LARGEST_PRINTED_CELL = 60  # pixels
PRINTED_HATCH = 0.4  # points
ONE_AT_A_TIME = threading.Lock()  # Matplotlib's settings are global to the process


class TooNarrow(ValueError):
    """The letters would be too small; the message names a width at which they are not."""

    def __init__(self, letters: float, inches: float):
        needed = np.ceil(100 * inches * LEAST_LETTERS / letters) / 100
        super().__init__(
            f"At {inches:.2f}in the smallest letters would be {letters:.1f} points high, too small "
            f"to read. Make it at least {needed:.2f}in wide ({np.ceil(25.4 * needed):.0f}mm)."
        )


@dataclass(frozen=True)
class Tiles:
    """All heads of one kind, (layers, heads, query, key), from 0 to 1. `query`, `key`: names of
    texts; `numbers`: the layers' numbers on screen."""

    query: str
    key: str
    weights: np.ndarray
    numbers: Sequence[int]


# Figures


def head(
    ending: str,
    metadata: str,
    title: str,
    weights: np.ndarray,
    query: Axis,
    key: Axis,
    colours: str = "ink",
    inches: float = 0.0,
    signed: float = 0.0,
    numbers: bool = False,
) -> bytes:
    """A head's weights, (query, key), with its tokens; `metadata` goes into the file. `colours`: a
    scale of theme.WEIGHTS. `inches`: the width of the page, to be printed; 0: as it comes.
    `signed`: weights are differences up to that, as paper.halved gives them. `numbers`: in the
    cells, where they fit. Raises TooNarrow."""
    rows, columns = weights.shape
    masked = weights == 0
    cell = int(np.clip(HEAD_ROOM // max(rows, columns, 1), 1, LARGEST_CELL))
    with sheet(ending, title, inches=inches, signed=signed, colours=colours) as drawing:
        if inches:
            cell = _printed_cell(drawing, weights, query, key, numbers)
        left = _left_of_cells(drawing, query, cell)
        drawing.write(FONT, 2.2 * FONT, title, 1.3 * FONT, bold=True)
        room = max(columns * cell + left, 30 * FONT)
        lines = drawing.wrapped(_hatching(masked.any()), room, SMALL)
        top = drawing.paragraph(FONT, 2.2 * FONT, lines) + 2.2 * FONT
        # The names of the axes may be longer than the axes.
        at = max(left + columns * cell / 2, FONT + drawing.width(key.title, FONT) / 2)
        drawing.write(at, top, key.title, align="center")
        below = top + FONT + drawing.width(query.title, FONT) / 2
        top = round(top + drawing.widest(key, cell) + 16)
        at = max(top + rows * cell / 2, below)
        drawing.write(1.6 * FONT, at, query.title, align="center", turned=True)
        drawing.cells(left, top, enlarged(drawing.shades(weights), cell * SHARP, cell * SHARP))
        drawing.hatch(regions(masked) * cell + (left, top, 0, 0))
        if numbers and cell >= _numbered_cell(drawing, weights):
            drawing.numbers(left, top, cell, weights)
        drawing.frame([(left, top, columns * cell, rows * cell)])
        for i, size in ticks(query, cell):
            y = top + (i + 0.5) * cell + 0.35 * size
            drawing.write(left - 6, y, short(query.labels[i]), size, "right")
        for i, size in ticks(key, cell):
            x = left + (i + 0.5) * cell + 0.35 * size
            drawing.write(x, top - 6, short(key.labels[i]), size, turned=True)
        right, tall = left + columns * cell + 2 * FONT, min(max(rows * cell, 120), 300)
        bottom = drawing.legend(
            right, top, "difference" if signed else "weight", tall, masked.any()
        )
        return drawing.file(
            right + 6 * FONT, max(top + rows * cell, bottom) + FONT, metadata
        )  # fmt: skip


def _left_of_cells(drawing: "Sheet", query: Axis, cell: int) -> int:
    return round(2.5 * FONT + drawing.widest(query, cell) + 8)


def _numbered_cell(drawing: "Sheet", weights: np.ndarray) -> int:
    """How large cells must be for their numbers."""
    texts = {drawing.number(weight) for weight in weights[weights > 0].tolist()}
    return round(max((drawing.width(text, SMALL) for text in texts), default=0) + 4)


def _printed_cell(
    drawing: "Sheet", weights: np.ndarray, query: Axis, key: Axis, numbers: bool
) -> int:
    """The size of cells on a page of a given width: the largest with good letters, or else with the
    largest letters, but no more labels left out than in large cells. With `numbers`, large enough
    for them, if letters can then be read."""

    lefts: dict[tuple, int] = {}  # many sizes have the same letters

    def letters(cell: int) -> float:
        named = tuple(ticks(query, cell))
        if named not in lefts:
            lefts[named] = _left_of_cells(drawing, query, cell)
        wide = lefts[named] + weights.shape[1] * cell + 8 * FONT
        smallest = min(SMALL, *(size for axis in (query, key) for _, size in ticks(axis, cell)))
        return 72 * drawing.inches / wide * smallest

    def labels(cell: int) -> list[int]:
        return [len(ticks(axis, cell)) for axis in (query, key)]

    most = labels(LARGEST_PRINTED_CELL)
    sizes = [cell for cell in range(LARGEST_PRINTED_CELL, 0, -1) if labels(cell) == most]
    least = _numbered_cell(drawing, weights) if numbers else 0
    numbered = [cell for cell in sizes if cell >= least and letters(cell) >= LEAST_LETTERS]
    sizes = numbered or sizes
    good = (cell for cell in sizes if letters(cell) >= GOOD_LETTERS)
    return next(good, max(sizes, key=letters))


def alignment(
    ending: str,
    metadata: str,
    title: str,
    columns: Sequence[Sequence[str]],
    weights: np.ndarray,
    inches: float,
) -> bytes:
    """Two columns of words, the source on the left, joined by lines: the larger the weight, (target
    word, source word), the thicker. The largest of each target word is black. `columns`: the
    heading of each, then its words. The rest as for `head`."""
    across, row = 9 * FONT, 1.6 * FONT
    with sheet(ending, title, inches=inches) as drawing:
        labels = [[short(word) for word in words] for words in columns]
        left, right = (max(drawing.width(word, FONT) for word in words) for words in labels)
        start = FONT + left + 6
        end, top = start + across, 2.2 * FONT
        heights = [len(words) - 1 for words in labels]

        def middle(side: int, i: int) -> float:
            return top + row * (1 + i + (max(heights) - heights[side]) / 2)

        best = weights.argmax(axis=1)
        shown = np.argwhere(
            (weights >= LEAST_LINE) | (np.arange(weights.shape[1]) == best[:, None])
        )
        for j, i in sorted(shown.tolist(), key=lambda at: at[1] == best[at[0]]):  # black on top
            colour = INK if i == best[j] else GREY_LINE
            ends = (middle(0, i), middle(1, j))
            drawing.line((start, end), ends, 1 + 3 * float(weights[j, i]), colour)
        for side, (words, x, align) in enumerate(
            ((labels[0], start - 6, "right"), (labels[1], end + 6, "left"))
        ):
            drawing.write(x, top - 0.2 * row, words[0], SMALL, align)
            for i, word in enumerate(words[1:]):
                drawing.write(x, middle(side, i) + 0.35 * FONT, word, FONT, align)
        return drawing.file(end + 6 + right + FONT, top + row * (max(heights) + 1), metadata)


def grid(
    ending: str,
    metadata: str,
    title: str,
    part: Tiles,
    texts: Mapping[str, Sequence[str]],
    legend: str,
    colours: str = "ink",
    inches: float = 0.0,
    signed: float = 0.0,
) -> bytes:
    """All heads of a kind, and below them the tokens of each text. The rest as for `head`."""
    room, narrowest = GRID_ROOM, 40 * FONT
    layers, heads = part.weights.shape[:2]
    if inches:
        room, narrowest = _printed_room(inches, heads), 0
    masked = bool((part.weights == 0).any())
    width = (room - TILES_LEFT) / heads - TILE_GAP
    wide = float(np.clip(width, LEAST_TILE / 2, LARGEST_TILE))
    sharp = SHARP if layers * heads * wide**2 < MOST_SHARP else 1
    with sheet(ending, title, sharp, inches, signed, colours) as drawing:
        drawing.write(FONT, 2.2 * FONT, title, 1.3 * FONT, bold=True)
        lines = drawing.wrapped(_hatching(masked), room, SMALL)
        first = drawing.paragraph(FONT, 2.2 * FONT, lines) + FONT
        right, top = _tiles(drawing, part, FONT, first, wide)
        right = max(right, narrowest)
        bottom = drawing.legend(right + 2 * FONT, first + 4 * FONT, legend, 240, masked)
        top = max(top, bottom)
        for name, tokens in texts.items():
            # Non-breaking spaces keep the two apart and end no line.
            text = f"{name}: " + "\N{NO-BREAK SPACE} ".join(tokens)
            lines = drawing.wrapped([text], right - FONT, SMALL, MOST_LINES)
            top = drawing.paragraph(FONT, top, lines) + 0.5 * SMALL
            pause()
        return drawing.file(right + 9 * FONT, top + FONT, metadata)


def _printed_room(inches: float, heads: int) -> float:
    """Pixels for the tiles on a page: with good letters, or with the smallest that can be read
    where tiles would be too small."""
    least = TILES_LEFT + heads * (LEAST_TILE + TILE_GAP)
    good, most = (
        72 * inches * SMALL / letters - 12 * FONT for letters in (GOOD_LETTERS, LEAST_LETTERS)
    )
    return max(good, min(most, least))


def _hatching(masked: bool) -> list[str]:
    return [MASKED["cells"]] if masked else []


def _tiles(
    drawing: "Sheet", part: Tiles, left: float, top: float, width: float
) -> tuple[float, float]:
    """Draw one kind of attention with tiles about `width` pixels wide. Returns its right and lower
    edges."""
    layers, heads, rows, columns = part.weights.shape
    sharp = drawing.sharp
    sides = f"rows: query ({part.query}) · columns: key ({part.key})"
    lines = drawing.wrapped([sides], max(heads * width, 14 * FONT), SMALL)
    top = drawing.paragraph(left, top, lines)
    right = left + drawing.width(lines[0], SMALL) + FONT
    left = round(left + TILES_LEFT - FONT)
    top = round(top + 1.8 * SMALL)
    # A cell is a whole number of a PNG's pixels.
    height = width * float(np.clip(rows / max(columns, 1), 0.6, 1.6))
    across = max(1, round(sharp * width / max(columns, 1)))
    down = max(1, round(sharp * height / max(rows, 1)))
    size = np.array([columns * across, rows * down])
    step = size + sharp * TILE_GAP
    picture = np.zeros((layers * step[1], heads * step[0], 4), np.uint8)
    corners, masked, regions_of = {}, [], {}
    for tile in range(layers * heads):
        pause()
        weights = part.weights[tile // heads, tile % heads]
        x, y = corner = step * (tile % heads, tile // heads)
        picture[y : y + size[1], x : x + size[0]] = enlarged(drawing.shades(weights), across, down)
        at = corners[tile] = corner / sharp + (left, top)
        if not weights.all():
            zero = weights == 0
            mask = zero.tobytes()
            if mask not in regions_of:  # most tiles share their mask with another
                regions_of[mask] = regions(zero) * (across, down, across, down) / sharp
            masked.append(regions_of[mask] + np.array([*at, 0, 0]))
    drawing.cells(left, top, picture)
    if masked:
        drawing.hatch(np.concatenate(masked))
    size, step = size / sharp, step / sharp
    drawing.frame([(*at, *size) for at in corners.values()])
    over = [f"head {i + 1}" for i in range(heads)]
    beside = [f"layer {part.numbers[i]}" for i in range(layers)]
    small = min(
        drawing.fitting(over, step[0], SMALL),
        drawing.fitting(beside, step[1], SMALL),
    )
    if drawing.inches and small < SMALL:  # letters of a page are not made smaller
        over, beside = ([name.split()[1] for name in names] for names in (over, beside))
        small = drawing.fitting(over, step[0], SMALL)
    for i, name in enumerate(over):
        x = left + i * step[0] + size[0] / 2
        drawing.write(x, top - 6, name, small, "center")
    for i, name in enumerate(beside):
        y = top + i * step[1] + size[1] / 2
        drawing.write(left - 8, y, name, small, "center", turned=True)
    return max(right, left + heads * step[0] + FONT), top + layers * step[1] + SMALL


def scale(colours: str = "ink", signed: float = 0.0) -> np.ndarray:
    """On white, the colours of the weights 0/255 to 255/255, or of differences, (256, rgba)."""
    stops = stops_of(DIFFERENCES if signed else WEIGHTS[colours])
    return np.pad(ramp(stops, 256), ((0, 0), (0, 1)), constant_values=255)


def enlarged(cells: np.ndarray, across: int, down: int) -> np.ndarray:
    """Repeat each cell, so that edges stay sharp in viewers that smooth images."""
    return cells.repeat(down, axis=0).repeat(across, axis=1)


def regions(masked: np.ndarray) -> np.ndarray:
    """Rectangles (x, y, width, height) that cover the masked cells: one for each run of a row,
    extended over the rows below with the same run."""
    boxes, begun = [], {}
    for y, row in enumerate([*masked, np.zeros(masked.shape[1], bool)]):
        ends = np.flatnonzero(np.diff(np.pad(row.astype(np.int8), 1))).tolist()
        runs = dict.fromkeys(zip(ends[::2], ends[1::2], strict=True), y)
        for start, stop in [run for run in begun if run not in runs]:
            first = begun.pop((start, stop))
            boxes.append((start, first, stop - start, y - first))
        begun = runs | begun
    return np.array(boxes, dtype=int).reshape(-1, 4)


def ticks(axis: Axis, cell: float) -> list[tuple[int, float]]:
    """Positions that get a label, and the size of its letters."""
    count = len(axis.labels)
    every = max(-(-count // MOST_LABELS), -(-SMALLEST_LETTERS // max(1, int(0.85 * cell))))
    size = min(FONT, max(SMALLEST_LETTERS, 0.85 * cell * every))
    return [(i, size) for i in range(0, count, every)]


def short(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"


# Matplotlib


@contextmanager
def sheet(
    ending: str,
    title: str,
    sharp: int = SHARP,
    inches: float = 0.0,
    signed: float = 0.0,
    colours: str = "ink",
) -> Iterator["Sheet"]:
    """A white page for a file of type "svg", "png" or "pdf"; the rest as for `head`."""
    with of_extra("A figure"):
        from matplotlib import style

    # Not rcdefaults(): while it clears the settings one by one, it looks for a GUI backend.
    written = WRITTEN | ({"hatch.linewidth": PRINTED_HATCH} if inches else {})
    with ONE_AT_A_TIME, style.context(["default", written]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an SVG may keep characters that no font here has
        yield Sheet(ending, title, sharp, inches, signed, scale(colours, signed))


class Sheet:
    def __init__(
        self, ending: str, title: str, sharp: int, inches: float, signed: float, scale: np.ndarray
    ):
        from matplotlib.figure import Figure

        self.ending, self.title, self.sharp = ending, title, sharp
        self.inches, self.signed = inches, signed
        self.scale = scale
        self.right = self.bottom = 0.0  # of all texts
        self.figure = Figure(dpi=72, facecolor=PAPER)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_axis_off()
        self.axes.set_autoscale_on(False)

    def write(
        self,
        x: float,
        y: float,
        text: str,
        size: float = FONT,
        align: str = "left",
        turned: bool = False,
        bold: bool = False,
        colour: str = INK,
    ) -> None:
        """Text with its baseline at y; `turned`: upwards."""
        long = self.width(text, size, bold)
        along = {"left": long, "center": long / 2, "right": 0}[align]  # from the point to the end
        end = (x + size, y + long - along) if turned else (x + along, y + size)
        self.right, self.bottom = max(self.right, end[0]), max(self.bottom, end[1])
        text = plain(text) if self.ending == "svg" else self._lettered(text)
        self.axes.text(
            x, y, text, ha=align, va="baseline", color=colour, parse_math=False,
            rotation=90 * turned, rotation_mode="anchor", font=self._font(text, size, bold),
        )  # fmt: skip

    def paragraph(self, x: float, y: float, lines: Sequence[str]) -> float:
        """Small lines of text below y. Returns the last baseline."""
        for line in lines:
            y += 1.4 * SMALL
            self.write(x, y, line, SMALL)
        return y

    def shades(self, weights: np.ndarray) -> np.ndarray:
        """Weights of 0 to 1 as bytes, (.., rgba); what is masked is clear."""
        coloured = self.scale[np.rint(np.clip(weights, 0, 1) * 255).astype(np.uint8)]
        coloured[weights == 0] = 0
        return coloured

    def number(self, weight: float) -> str:
        """A weight, or the difference that it stands for, with two digits: .07, 1, −.25."""
        shown = f"{(2 * weight - 1) * self.signed if self.signed else weight:.2f}"
        return {"-0.00": "0", "0.00": "0"}.get(shown, shown.replace("-", "−").replace("0.", ".", 1))

    def numbers(self, x: float, y: float, cell: float, weights: np.ndarray) -> None:
        """The weights that are not masked, in their cells."""
        for (row, column), weight in np.ndenumerate(weights):
            if not weight:
                continue
            colour = str(ink_on(self.shades(weights[row, column, None])[0, :3]))
            middle, base = x + (column + 0.5) * cell, y + (row + 0.5) * cell + 0.35 * SMALL
            self.write(middle, base, self.number(weight), SMALL, "center", colour=colour)

    def cells(self, x: float, y: float, colours: np.ndarray) -> None:
        """An image (rows, columns, rgba), `sharp` of its pixels to each pixel of the page."""
        if colours.size:
            height, width = (length / self.sharp for length in colours.shape[:2])
            self.axes.imshow(
                colours, extent=(x, x + width, y + height, y), aspect="auto",
                interpolation="none", clip_on=False,
            )  # fmt: skip

    def frame(self, boxes, colour: str = BORDER, thick: float = 1) -> None:
        """Outlines of rectangles (x, y, width, height), all in one path."""
        self._path(boxes, edgecolor=colour, linewidth=thick, joinstyle="miter")

    def line(self, across, down, thick: float, colour: str) -> None:
        """A line from (across[0], down[0]) to (across[1], down[1])."""
        from matplotlib.lines import Line2D

        self.axes.add_artist(Line2D(across, down, color=colour, linewidth=thick, clip_on=False))

    def hatch(self, boxes) -> None:
        """Hatched rectangles, all in one path: one path for each would be slow and large."""
        share = round(100 * MASKED["opacity"])
        ink = bytes(ramp([PAPER, INK], 101)[share].tolist()).hex()
        lines = "/" * (HATCH_UNIT // MASKED["spacing"]) * (2 if self.inches else 1)
        self._path(boxes, hatch=lines, edgecolor=f"#{ink}", linewidth=0)

    def _path(self, boxes, **how) -> None:
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        if not len(boxes):
            return
        x, y, width, height = np.asarray(boxes, dtype=float).T
        corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
        vertices = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)
        codes = np.tile([Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY], len(vertices))
        path = Path(vertices.reshape(-1, 2), codes)
        self.axes.add_artist(PathPatch(path, facecolor="none", clip_on=False, **how))

    def legend(self, x: float, y: float, name: str, tall: float, masked: bool) -> float:
        """Draw the colour scale. Returns its lower edge."""
        x, y, steps = round(x), round(y), round(tall - 20)
        self.write(x, y, name, SMALL)
        colours = self.shades(np.linspace(1, 1e-9, steps)[:, None])
        self.cells(x, y + 14, enlarged(colours, 16 * self.sharp, self.sharp))
        for weight in (1, 0.75, 0.5, 0.25, 0):
            at = y + 14 + (1 - weight) * steps
            name = f"{(2 * weight - 1) * self.signed:.2g}" if self.signed else f"{weight:g}"
            self.write(x + 22, at + 0.35 * SMALL, name.replace("-", "−"), SMALL)
        bottom = y + 14 + steps
        if masked:
            box = [(x, bottom + 14, 16, 16)]
            self.hatch(box)
            self.frame(box)
            self.write(x + 22, bottom + 14 + 0.9 * SMALL, "masked", SMALL)
            bottom += 30
        return bottom + 8

    def widest(self, axis: Axis, cell: float) -> float:
        return max(
            (self.width(short(axis.labels[i]), size) for i, size in ticks(axis, cell)), default=0
        )

    def fitting(self, texts: Sequence[str], room: float, size: float) -> float:
        """The largest font size up to `size` at which all texts fit."""
        widest = max((self.width(text, size) for text in texts), default=0)
        return min(size, max(6, size * (room - 3) / max(widest, 1)))

    def width(self, text: str, size: float, bold: bool = False) -> float:
        text = self._lettered(text)
        return self._ruler.get_text_width_height_descent(
            text, self._font(text, size, bold), ismath=False
        )[0]

    def wrapped(
        self, sentences: Sequence[str], room: float, size: float, most: int | None = None
    ) -> list[str]:
        """Sentences broken into lines that fit; a longer word is cut. Of more than `most` lines
        the last ends in …"""
        lines = list(islice(self._wrapped(sentences, room, size), most and most + 1))
        if most and len(lines) > most:
            lines = [*lines[: most - 1], lines[most - 1][:-1] + "…"]
        return lines

    def _wrapped(self, sentences: Sequence[str], room: float, size: float) -> Iterator[str]:
        for sentence in sentences:
            line = ""
            for word in sentence.split(" "):
                longer = f"{line} {word}" if line else word
                width = self.width(longer, size)
                if line and width > room:
                    yield line
                    longer, width = word, self.width(word, size)
                while len(longer) > 1 and width > room:
                    cut = max(1, int(len(longer) * room / width) - 1)
                    yield longer[:cut]
                    longer = longer[cut:]
                    width = self.width(longer, size)
                line = longer
            yield line

    @cached_property
    def _ruler(self):
        from matplotlib.backends.backend_agg import RendererAgg

        return RendererAgg(1, 1, 72)

    def _lettered(self, text: str) -> str:
        """The text, with characters that no font has replaced by their codes, such as U+4E2D."""
        text, known = plain(text), letters(FAMILY)
        if known.issuperset(text):
            return text
        others = other_fonts(self.ending == "pdf")
        return "".join(c if c in known or c in others else code(c) for c in text)

    def _font(self, text: str, size: float, bold: bool):
        from matplotlib.font_manager import FontProperties

        families = [FAMILY]
        if not letters(FAMILY).issuperset(text):
            others = other_fonts(self.ending == "pdf")
            families += dict.fromkeys(others[c] for c in text if c in others)
        if self.ending == "svg":
            families.append("sans-serif")
        return FontProperties(family=families, size=size, weight="bold" if bold else "normal")

    def _scale(self, by: float) -> None:
        """What is drawn in points takes the size of the page; the rest follows its axes. Raises
        TooNarrow."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch
        from matplotlib.text import Text

        texts = [text for text in self.figure.findobj(Text) if text.get_text()]
        for text in texts:
            text.set_fontsize(float(text.get_fontsize()) * by)
        for shape in (*self.figure.findobj(Line2D), *self.figure.findobj(Patch)):
            shape.set_linewidth(shape.get_linewidth() * by)
        smallest = min((float(text.get_fontsize()) for text in texts), default=LEAST_LETTERS)
        if smallest < LEAST_LETTERS - 1e-6:
            raise TooNarrow(smallest, self.inches)

    def file(self, width: float, height: float, metadata: str) -> bytes:
        """The page as a file with `metadata`: this large, or larger where a text is wider."""
        from matplotlib.backends import backend_agg, backend_pdf, backend_svg

        width, height = max(width, self.right + FONT), max(height, self.bottom + FONT)
        width, height = int(np.ceil(width)), int(np.ceil(height))
        scale, dpi = 1, 72 * self.sharp
        if self.inches:
            scale = self.inches * 72 / width
            self._scale(scale)
            dpi = max(dpi / scale, PRINTED_DPI)
        self.figure.set_size_inches(width * scale / 72, height * scale / 72)
        self.axes.set(xlim=(0, width), ylim=(height, 0))
        canvas, about = {
            "png": (backend_agg.FigureCanvasAgg, {"headlight": metadata}),
            "svg": (backend_svg.FigureCanvasSVG, {"Description": metadata, "Date": None}),
            "pdf": (backend_pdf.FigureCanvasPdf, {"Subject": metadata, "CreationDate": None}),
        }[self.ending]
        file = io.BytesIO()
        canvas(self.figure).print_figure(
            file, format=self.ending, dpi=dpi, facecolor=PAPER,
            metadata={"Title": plain(self.title)} | about,
        )  # fmt: skip
        return file.getvalue()


def plain(text: str) -> str:
    """Text on one line; invisible characters become codes."""
    return "".join(
        c if c.isprintable() or c == "\N{NO-BREAK SPACE}" else " " if c.isspace() else code(c)
        for c in text
    )


def code(character: str) -> str:
    return f"U+{ord(character):04X}"


@cache
def letters(family: str) -> frozenset[str]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    path = findfont(FontProperties(family=family))
    return frozenset(map(chr, get_font(path).get_charmap()))


@cache
def other_fonts(truetype: bool) -> dict[str, str]:
    """Character → an installed font family that has it; with `truetype`, only fonts that a PDF can
    embed."""
    from matplotlib.font_manager import fontManager
    from matplotlib.ft2font import FT2Font

    families: dict[str, str] = {}
    for font in fontManager.ttflist:
        upright = font.style == "normal" and font.weight == 400 and font.stretch == "normal"
        if not upright or "LastResort" in font.fname or font.name.startswith("."):
            continue
        try:
            if not (truetype and _postscript(font.fname)):
                for number in FT2Font(font.fname).get_charmap():
                    families.setdefault(chr(number), font.name)
        except (OSError, RuntimeError):
            continue  # removed in the meantime, or broken
    return families


def _postscript(path: str) -> bool:
    """Whether a font has PostScript instead of TrueType outlines."""
    with open(path, "rb") as file:
        start = file.read(16)
        if start.startswith(b"ttcf"):  # a collection: its first font
            file.seek(int.from_bytes(start[12:], "big"))
            start = file.read(4)
    return start.startswith(b"OTTO")
