"""Still pictures of attention: shapes with their places, then written as SVG or as PNG.

SVG is written from the arrays and PNG by Pillow: no browser takes part. Paper is white.
"""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

from app.charts import MOST_LABELS, Axis
from app.theme import FOCUS, FONT, INK, PAPER, WEIGHTS

INK, PAPER = INK["light"], PAPER["light"]
SHARP = 2  # pixels of a PNG for one of the drawing
LARGEST_CELL, SMALLEST_LETTERS, SMALL = 34, 8, 14
HEAD_ROOM, GRID_ROOM = 1000, 1500  # pixels
LEAST_TILE, LARGEST_TILE, TILE_GAP = 56, 170, 6  # smaller tiles are stacked instead
TILES_LEFT = 3 * FONT  # room for the names of layers
LONGEST_LABEL, MOST_LINES = 32, 4  # characters; lines of a text below the grid
MOST_RECTANGLES = 40_000  # of one SVG; what needs more is put in as pixels
FAMILY = "'Source Sans 3', 'Source Sans Pro', sans-serif"
# Letters that the app's own font lacks are looked for in these, where the system has them.
MORE_FONTS = ("DejaVuSans.ttf", "NotoSansCJK-Regular.ttc", "arial.ttf", "Arial Unicode.ttf")


@dataclass(frozen=True)
class Text:
    """Letters of `size` pixels that begin, are centred or end at (x, y), the base line; `turned`
    ones run upwards."""

    x: float
    y: float
    text: str
    size: float = FONT
    anchor: str = "start"
    turned: bool = False
    bold: bool = False


@dataclass(frozen=True)
class Cells:
    """A picture of (rows, columns, rgba) bytes, `width` × `height` pixels; what is not opaque is
    left blank."""

    x: float
    y: float
    width: float
    height: float
    colours: np.ndarray


@dataclass(frozen=True)
class Frame:
    """A rectangle without filling."""

    x: float
    y: float
    width: float
    height: float
    colour: str = INK
    thick: float = 1


@dataclass
class Drawing:
    """Shapes in their order, and a title for who cannot see them."""

    title: str
    width: float = 0
    height: float = 0
    shapes: list = field(default_factory=list)

    def add(self, *shapes: Text | Cells | Frame) -> None:
        self.shapes += shapes


@dataclass(frozen=True)
class Tiles:
    """All heads of one kind, (layers, heads, query, key) from 0 to 1; `places`: tile (layer ×
    heads + head) → where it stands; `values`: a text a tile, or nothing. `focus` is a tile;
    `numbers` are what the layers are called, 1, 2, … where none are given."""

    name: str
    asks: str
    looked_at: str
    weights: np.ndarray
    places: Sequence[int]
    values: Sequence[str] = ()
    focus: int | None = None
    numbers: Sequence[int] = ()


# What is drawn


def head(title: str, said: Sequence[str], weights: np.ndarray, query: Axis, key: Axis) -> Drawing:
    """One picture, (query, key), with its pieces. Rows that may look at nothing are blank."""
    rows, columns = weights.shape
    cell = int(np.clip(HEAD_ROOM // max(rows, columns, 1), 1, LARGEST_CELL))
    shades = colours(weights)
    shades[~weights.any(axis=1)] = 0
    drawing = Drawing(title)
    left = 2.5 * FONT + _widest(query, cell) + 8
    top = 2.2 * FONT
    lines = wrapped(said, max(columns * cell + left, 30 * FONT), SMALL)
    drawing.add(Text(FONT, top, title, 1.3 * FONT, bold=True))
    for line in lines:
        top += 1.4 * SMALL
        drawing.add(Text(FONT, top, line, SMALL))
    top += 2.2 * FONT
    drawing.add(Text(left + columns * cell / 2, top, key.title, FONT, "middle"))
    top += _widest(key, cell) + 16
    drawing.add(Text(1.6 * FONT, top + rows * cell / 2, query.title, FONT, "middle", True))
    drawing.add(Cells(left, top, columns * cell, rows * cell, shades))
    for i, size in _ticks(query, cell):
        y = top + (i + 0.5) * cell + 0.35 * size
        drawing.add(Text(left - 6, y, short(query.labels[i]), size, "end"))
    for i, size in _ticks(key, cell):
        x = left + (i + 0.5) * cell + 0.35 * size
        drawing.add(Text(x, top - 6, short(key.labels[i]), size, "start", True))
    right = left + columns * cell + 2 * FONT
    tall = _legend(drawing, right, top, "weight", min(max(rows * cell, 120), 300))
    longest = max([text_width(title, 1.3 * FONT), *(text_width(line, SMALL) for line in lines)])
    drawing.width = max(right + 5 * FONT, longest + 2 * FONT)
    drawing.height = top + max(rows * cell, tall) + FONT
    return drawing


def grid(
    title: str,
    said: Sequence[str],
    parts: Sequence[Tiles],
    texts: Mapping[str, Sequence[str]],
    legend: str,
) -> Drawing:
    """All heads, one block a kind, below them the pieces of each text."""
    drawing = Drawing(title)
    top = 2.2 * FONT
    drawing.add(Text(FONT, top, title, 1.3 * FONT, bold=True))
    for line in wrapped(said, GRID_ROOM, SMALL):
        top += 1.4 * SMALL
        drawing.add(Text(FONT, top, line, SMALL))
    first, right = top + FONT, 40 * FONT
    top = first

    def width(beside):
        heads = max((part.weights.shape[1] for part in parts), default=1)
        return (GRID_ROOM / beside - TILES_LEFT) / heads - TILE_GAP

    beside = max(1, len(parts))
    while beside > 1 and width(beside) < LEAST_TILE:
        beside -= 1
    wide = float(np.clip(width(beside), LEAST_TILE / 2, LARGEST_TILE))
    for start in range(0, len(parts), beside):
        left, below = FONT, top
        for part in parts[start : start + beside]:
            left, bottom = _tiles(drawing, part, left, top + 2 * FONT, wide)
            below = max(below, bottom)
        top, right = below, max(right, left)
    _legend(drawing, right + 2 * FONT, first + 4 * FONT, legend, 240)
    top = max(top, first + 4 * FONT + 260)
    for name, pieces in texts.items():
        lines = wrapped([f"{name}: {'  '.join(pieces)}"], right - FONT, SMALL)
        if len(lines) > MOST_LINES:
            lines = [*lines[: MOST_LINES - 1], lines[MOST_LINES - 1][:-1] + "…"]
        for line in lines:
            top += 1.4 * SMALL
            drawing.add(Text(FONT, top, line, SMALL))
        top += 0.5 * SMALL
    drawing.width, drawing.height = right + 8 * FONT, top + FONT
    return drawing


def _tiles(
    drawing: Drawing, part: Tiles, left: float, top: float, width: float
) -> tuple[float, float]:
    """Draws a part, its tiles `width` pixels wide; gives its right and lower end."""
    layers, heads, rows, columns = part.weights.shape
    numbers = part.numbers or range(1, layers + 1)
    height = width * float(np.clip(rows / max(columns, 1), 0.6, 1.6))
    above = 1.2 * SMALL if part.values else 0
    drawing.add(Text(left, top, part.name, 1.1 * FONT, bold=True))
    sides = f"rows: who asks ({part.asks}) · columns: who is looked at ({part.looked_at})"
    for line in wrapped([sides], max(heads * width, 14 * FONT), SMALL):
        top += 1.4 * SMALL
        drawing.add(Text(left, top, line, SMALL))
    left += TILES_LEFT - FONT
    top += (0.5 if part.values else 1.8) * SMALL
    if not part.values:
        for i in range(heads):
            x = left + i * (width + TILE_GAP) + width / 2
            drawing.add(Text(x, top - 6, f"head {i + 1}", SMALL, "middle"))
        for i in range(layers):
            y = top + i * (height + TILE_GAP) + height / 2
            drawing.add(Text(left - 8, y, f"layer {numbers[i]}", SMALL, "middle", True))
    shades = colours(part.weights)
    shades[part.weights == 0] = 0  # may not look there
    for tile, place in enumerate(part.places):
        x = left + place % heads * (width + TILE_GAP)
        y = top + above + place // heads * (height + TILE_GAP + above)
        drawing.add(Cells(x, y, width, height, shades[tile // heads, tile % heads]))
        drawing.add(Frame(x, y, width, height, "#c8c8c8"))
        if part.values:
            name = f"{numbers[tile // heads]}·{tile % heads + 1}  {part.values[tile]}"
            drawing.add(Text(x, y - 4, name, SMALL))
        if tile == part.focus:
            drawing.add(Frame(x - 2, y - 2, width + 4, height + 4, FOCUS, 4))
    bottom = top + layers * (height + TILE_GAP + above)
    return left + heads * (width + TILE_GAP) + FONT, bottom + SMALL


def _legend(drawing: Drawing, x: float, y: float, name: str, tall: float) -> float:
    """The scale of colours; gives its height."""
    drawing.add(Text(x, y + 4, name, SMALL))
    scale = colours(np.linspace(1, 0, 64)[:, None])
    drawing.add(Cells(x, y + 14, 16, tall - 20, scale))
    for weight in (1, 0.75, 0.5, 0.25, 0):
        at = y + 14 + (1 - weight) * (tall - 20)
        drawing.add(Text(x + 22, at + 0.35 * SMALL, f"{weight:g}", SMALL))
    return tall + 10


def colours(weights: np.ndarray) -> np.ndarray:
    """Weights of 0 to 1 as bytes, (.., rgba), in the app's colours for weights."""
    table = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in WEIGHTS])
    places = np.linspace(0, len(table) - 1, 256)
    steps = [np.interp(places, range(len(table)), channel) for channel in table.T]
    opaque = np.full(256, 255)
    scale = np.rint(np.stack([*steps, opaque], axis=-1)).astype(np.uint8)
    return scale[np.rint(np.clip(weights, 0, 1) * 255).astype(np.uint8)]


def _ticks(axis: Axis, cell: float) -> list[tuple[int, float]]:
    """Positions that get a label, and the size of its letters."""
    count = len(axis.labels)
    every = max(-(-count // MOST_LABELS), -(-SMALLEST_LETTERS // max(1, int(0.85 * cell))))
    size = min(FONT, max(SMALLEST_LETTERS, 0.85 * cell * every))
    return [(i, size) for i in range(0, count, every)]


def _widest(axis: Axis, cell: float) -> float:
    ticks = _ticks(axis, cell)
    return max((text_width(short(axis.labels[i]), size) for i, size in ticks), default=0)


def short(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"


def wrapped(sentences: Sequence[str], room: float, size: float) -> list[str]:
    """Sentences as lines that fit; a longer word is cut."""
    lines = []
    for sentence in sentences:
        line = ""
        for word in sentence.split(" "):
            longer = f"{line} {word}" if line else word
            if line and text_width(longer, size) > room:
                lines.append(line)
                longer = word
            while text_width(longer, size) > room and len(longer) > 1:
                cut = max(1, int(len(longer) * room / text_width(longer, size)) - 1)
                lines.append(longer[:cut])
                longer = longer[cut:]
            line = longer
        lines.append(line)
    return lines


# SVG


def svg(drawing: Drawing, note: str) -> bytes:
    """`note` goes into its <metadata>. Letters are text, in the fonts of who looks at it."""
    width, height = round(drawing.width), round(drawing.height)
    title = escape(valid(drawing.title))
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" '
        f'font-family="{FAMILY}" fill="{INK}">',
        f"<title>{title}</title>",
        f"<metadata>{escape(valid(note))}</metadata>",
        f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
    ]
    left = MOST_RECTANGLES
    for shape in drawing.shapes:
        if isinstance(shape, Cells):
            rectangles = _rectangles(shape.colours, left)
            left -= len(rectangles)
            parts.append(_svg_cells(shape, rectangles))
        else:
            parts.append(_svg_text(shape) if isinstance(shape, Text) else _svg_frame(shape))
    return "\n".join([*parts, "</svg>\n"]).encode("utf-8")


def _svg_text(shape: Text) -> str:
    turn = f' transform="rotate(-90 {shape.x:g} {shape.y:g})"' if shape.turned else ""
    weight = ' font-weight="bold"' if shape.bold else ""
    return (
        f'<text x="{shape.x:g}" y="{shape.y:g}" font-size="{shape.size:g}" '
        f'text-anchor="{shape.anchor}" xml:space="preserve"{weight}{turn}>'
        f"{escape(valid(shape.text))}</text>"
    )


def _svg_frame(shape: Frame) -> str:
    return (
        f'<rect x="{shape.x:g}" y="{shape.y:g}" width="{shape.width:g}" height="{shape.height:g}" '
        f'fill="none" stroke="{shape.colour}" stroke-width="{shape.thick:g}"/>'
    )


def _rectangles(shades: np.ndarray, most: int) -> list[str]:
    """One rectangle for each run of equal cells of a row; none if there are more than `most`."""
    rows, columns = shades.shape[:2]
    packed = np.ascontiguousarray(shades).view(np.uint32)[..., 0]
    ends = np.ones((rows, columns), dtype=bool)
    ends[:, :-1] = packed[:, 1:] != packed[:, :-1]
    if ends.sum() > most:
        return []
    found = []
    for y, row in enumerate(ends):
        start = 0
        for stop in (np.flatnonzero(row) + 1).tolist():
            r, g, b, opaque = shades[y, start].tolist()
            if opaque:
                found.append(
                    f'<rect x="{start}" y="{y}" width="{stop - start}" height="1" '
                    f'fill="#{r:02x}{g:02x}{b:02x}"/>'
                )
            start = stop
    return found


def _svg_cells(shape: Cells, rectangles: list[str]) -> str:
    rows, columns = shape.colours.shape[:2]
    if rectangles or not shape.colours[..., 3].any():
        across, down = shape.width / max(columns, 1), shape.height / max(rows, 1)
        place = f"translate({shape.x:g} {shape.y:g}) scale({across:.6g} {down:.6g})"
        inner = "\n".join(rectangles)
        return f'<g class="cells" transform="{place}" shape-rendering="crispEdges">{inner}</g>'
    data = base64.b64encode(_png(Image.fromarray(shape.colours))).decode("ascii")
    return (
        f'<image class="cells" x="{shape.x:g}" y="{shape.y:g}" width="{shape.width:g}" '
        f'height="{shape.height:g}" preserveAspectRatio="none" '
        f'style="image-rendering: pixelated" href="data:image/png;base64,{data}"/>'
    )


def valid(text: str) -> str:
    """Text that XML takes: what it has no way to say is written as its code."""
    return "".join(c if _is_xml(c) else f"U+{ord(c):04X}" for c in text)


def _is_xml(character: str) -> bool:
    code = ord(character)
    return character in "\t\n\r" or (
        code >= 32 and not 0x7F <= code <= 0x9F and not 0xD800 <= code <= 0xDFFF
        and code not in (0xFFFE, 0xFFFF)
    )  # fmt: skip


# PNG


def png(drawing: Drawing, note: str) -> bytes:
    """`note` goes into its text chunk "headlight". Letters that no font here has are written by
    their code, such as U+4E2D."""
    size = round(drawing.width * SHARP), round(drawing.height * SHARP)
    image = Image.new("RGB", size, PAPER)
    for shape in drawing.shapes:
        if isinstance(shape, Text):
            _png_text(image, shape)
            continue
        x, y = round(shape.x * SHARP), round(shape.y * SHARP)
        width = max(1, round((shape.x + shape.width) * SHARP) - x)
        height = max(1, round((shape.y + shape.height) * SHARP) - y)
        if isinstance(shape, Frame):
            box, thick = (x, y, x + width - 1, y + height - 1), round(shape.thick * SHARP)
            ImageDraw.Draw(image).rectangle(box, outline=shape.colour, width=thick)
        elif shape.colours.size:
            rows, columns = shape.colours.shape[:2]
            shrinks = width < columns or height < rows
            how = Image.Resampling.BOX if shrinks else Image.Resampling.NEAREST
            cells = Image.fromarray(shape.colours).resize((width, height), how)
            image.paste(cells.convert("RGB"), (x, y), cells.getchannel("A"))
    about = PngInfo()
    about.add_itxt("headlight", note.encode("utf-8", "replace").decode("utf-8"))
    about.add_itxt("Title", valid(drawing.title))
    return _png(image, pnginfo=about, dpi=(96 * SHARP, 96 * SHARP))


def _png(image: Image.Image, **more) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG", **more)
    return file.getvalue()


def _png_text(image: Image.Image, shape: Text) -> None:
    text, font = _set(shape.text, round(shape.size * SHARP), shape.bold)
    up, down = (round(k * shape.size * SHARP) for k in (1.1, 0.4))
    width = max(1, round(font.getlength(text)) + 2)
    letters = Image.new("L", (width, up + down))
    ImageDraw.Draw(letters).text((0, up), text, fill=255, font=font, anchor="ls")
    back = {"start": 0, "middle": width / 2, "end": width}[shape.anchor]
    x, y = shape.x * SHARP - back, shape.y * SHARP - up
    if shape.turned:
        letters = letters.transpose(Image.Transpose.ROTATE_90)
        x, y = shape.x * SHARP - up, shape.y * SHARP - (width - back)
    image.paste(INK, (round(x), round(y)), letters)


@lru_cache(maxsize=4096)
def text_width(text: str, size: float) -> float:
    """Pixels, with a little to spare: other programs have other fonts."""
    written, font = _set(text, round(size * SHARP), False)
    return 1.06 * font.getlength(written) / SHARP


def _set(text: str, size: int, bold: bool) -> tuple[str, ImageFont.FreeTypeFont]:
    """The text as it can be written, and the font that lacks the fewest of its letters."""
    text = valid(text).replace("\n", " ").replace("\r", " ").replace("\t", " ")
    faces = range(len(_faces(False)))
    lacks = [[c for c in dict.fromkeys(text) if _lacks(face, c)] for face in faces]
    best = min(faces, key=lambda face: len(lacks[face]))
    codes = {ord(c): f"U+{ord(c):04X}" for c in lacks[best]}
    return text.translate(codes), _sized(best, size, bold)


@cache
def _faces(bold: bool) -> tuple[ImageFont.FreeTypeFont, ...]:
    """Fonts there are, the app's own first: it comes with Streamlit."""
    found = []
    media = Path(find_spec("streamlit").origin).parent / "static" / "static" / "media"
    for path in (*sorted(media.glob("SourceSansVF-Upright*")), *MORE_FONTS):
        try:
            font = ImageFont.truetype(path, FONT)
            if media in Path(path).parents:
                font.set_variation_by_axes([700 if bold else 400])
            found.append(font)
        except OSError:
            continue
    return (*found, ImageFont.load_default(FONT))


@lru_cache(maxsize=64)
def _sized(face: int, size: int, bold: bool) -> ImageFont.FreeTypeFont:
    font = _faces(bold)[face]
    sized = font.font_variant(size=size)
    if hasattr(font.path, "parts") and "SourceSans" in font.path.name:
        sized.set_variation_by_axes([700 if bold else 400])
    return sized


@lru_cache(maxsize=8192)
def _lacks(face: int, character: str) -> bool:
    """A font draws one sign for all letters that it has none for."""
    font, nothing = _faces(False)[face], "\U0010ffff"
    return not character.isspace() and _drawn(font, character) == _drawn(font, nothing)


def _drawn(font: ImageFont.FreeTypeFont, character: str) -> tuple:
    mask = font.getmask(character)
    return mask.size, bytes(mask)
