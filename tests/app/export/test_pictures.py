"""Pictures and the page of HTML, read back by Pillow, a reader of PDF and one of XML."""

import base64
import io
import json
import math
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from pypdf import PdfReader

from headlight.app.export import figures, pictures
from headlight.app.export.paper import Figure
from headlight.app.text import part_names
from headlight.app.text.axis import Axis
from headlight.model import load
from headlight.model.analysis.reading import Reading
from headlight.model.masks import Masks
from headlight.model.pause import pausing
from tests.app.common import view_of
from tests.conftest import ROOT, long_but
from tests.markup import inflated

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
DESCRIPTION = ".//{http://purl.org/dc/elements/1.1/}description"
ENDINGS = ("svg", "png", "pdf")
NEAR = 1.5 / 255  # neighbours among the 256 colours may be equal


def weight_of(colour) -> np.ndarray:
    """The weight that a colour stands for, (.., 3) → (..)."""
    far = np.abs(np.asarray(colour, dtype=int)[..., None, :] - figures.scale()[:, :3].astype(int))
    assert (far.sum(-1).min(-1) == 0).all(), "not a colour of the scale"
    return far.sum(-1).argmin(-1) / 255


def images_of(svg: bytes) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each picture in an SVG: its pixels (rgba), and x, y, width and height on the sheet."""
    found = []
    for image in ElementTree.fromstring(svg).iter(f"{SVG}image"):
        data = base64.b64decode(image.get(HREF).partition(",")[2])
        pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"))
        across, _, _, down, x, y = map(float, re.findall(r"-?[\d.]+", image.get("transform")))
        height, width = pixels.shape[:2]
        found.append((pixels, np.array([x, y, width * across, height * down])))
    return found


def cells_of(pixels, rows: int, columns: int) -> np.ndarray:
    """Weights in the middle of each cell of a picture; NaN where it is clear."""
    height, width = pixels.shape[:2]
    at = [((np.arange(n) + 0.5) * size / n).astype(int) for n, size in ((rows, height),
          (columns, width))]  # fmt: skip
    seen = pixels[np.ix_(*at)]
    opaque = seen[..., 3] == 255
    weights = np.full((rows, columns), np.nan)
    weights[opaque] = weight_of(seen[opaque][:, :3])
    return weights


def hatched(svg: bytes) -> list[np.ndarray]:
    """The rectangles (x, y, width, height) of each hatched path."""
    found = []
    for path in ElementTree.fromstring(svg).iter(f"{SVG}path"):
        if "url(#" in (path.get("style") or ""):
            points = np.array(re.findall(r"-?[\d.]+", path.get("d")), float).reshape(-1, 4, 2)
            found.append(np.concatenate([points[:, 0], points[:, 2] - points[:, 0]], axis=1))
    return found


def hatched_cells(boxes, place, rows: int, columns: int) -> np.ndarray:
    """Which cells of a picture at `place` lie in the rectangles; each in one at most."""
    x, y = (place[i] + (np.arange(n) + 0.5) * place[i + 2] / n
            for i, n in ((0, columns), (1, rows)))  # fmt: skip
    left, top, width, height = boxes.T[:, :, None, None]
    inside = (x > left) & (x < left + width) & (y[:, None] > top) & (y[:, None] < top + height)
    assert inside.sum(0).max() <= 1
    return inside.any(0)


def caption(metadata: str) -> str:
    return json.loads(metadata)["caption"]


def shown_texts(svg: bytes) -> list[str]:
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def pdf_text(pdf: bytes) -> str:
    (page,) = PdfReader(io.BytesIO(pdf)).pages
    return page.extract_text()


def test_nobody_needs_streamlit_for_them_nor_matplotlib_before_nor_a_window_system():
    """pyplot looks for a window system, and whoever draws for others has none."""
    code = """
import sys
import headlight.app.export.bundle
assert not {"streamlit", "matplotlib"} & {*sys.modules}
import numpy as np
from headlight.app.text.axis import Axis
from headlight.app.export import figures
for ending in ("svg", "png", "pdf"):
    axes = Axis("query", "ab"), Axis("key", "ab")
    assert figures.head(ending, "{}", "Title", np.eye(2), *axes)
assert not {"streamlit", "matplotlib.pyplot"} & {*sys.modules}
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_head_as_svg_has_its_weights_tokens_and_settings(trace, view):
    svg = pictures.head(view, "svg")
    root = ElementTree.fromstring(svg)
    (cells, _), (scale, _) = images_of(svg)
    weights = trace.attention["cross"][2, 1]
    assert np.abs(cells_of(cells, *weights.shape) - weights).max() <= NEAR
    assert np.diff(cells_of(scale, 64, 1)[:, 0]).max() < 0  # the legend, 1 above and 0 below
    texts = shown_texts(svg)
    assert texts[0] == root.find(f"{SVG}title").text == "Cross-attention, layer 3, head 2"
    assert "query (target, about to be written)" in texts and "key (source)" in texts
    assert "weight" in texts
    assert "masked" not in texts and not hatched(svg)
    tokens = [*trace.row_words("cross", 2, 1), *trace.src.tokens]
    at = texts.index(tokens[0])
    assert texts[at : at + len(tokens)] == tokens
    assert caption(root.find(DESCRIPTION).text) == pictures.printed(view).caption()


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_the_head_as_png_has_its_weights_and_settings(trace, kind):
    view, weights = view_of(trace, kind), trace.attention[kind][2, 1]
    (_, (x, y, width, height)), *_ = images_of(pictures.head(view, "svg"))
    image = Image.open(io.BytesIO(pictures.head(view, "png")))
    assert caption(image.text["headlight"]) == pictures.printed(view).caption()
    assert image.text["Title"] == view.name
    box = np.array([x, y, x + width, y + height]) * figures.SHARP
    pixels = np.asarray(image.crop(tuple(box.astype(int))).convert("RGBA"))
    rows, columns = np.nonzero(weights)
    across, down = (box[2:] - box[:2]) / weights.shape[::-1]
    seen = pixels[((rows + 0.5) * down).astype(int), ((columns + 0.5) * across).astype(int)]
    assert np.abs(weight_of(seen[:, :3]) - weights[rows, columns]).max() <= NEAR
    if kind == "decoder":
        corner = pixels[: int(down), -int(across) :, :3]
        assert 0.4 < (corner.min(-1) > 250).mean() < 0.9 and corner.max(-1).min() < 200  # lines


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_head_as_pdf_has_its_weights_tokens_and_settings(trace, kind):
    view = view_of(trace, kind)
    pdf = pictures.head(view, "pdf")
    reader = PdfReader(io.BytesIO(pdf))
    assert reader.metadata.title == view.name
    assert caption(reader.metadata.subject) == pictures.printed(view).caption()
    assert reader.metadata.creation_date is None
    text = pdf_text(pdf).split("\n")
    axes = part_names.axes(trace, view.head)
    for shown in (view.name, *(axis.title for axis in axes)):
        assert shown in text
    assert ("Hatched: masked." in text) == (kind == "decoder")
    for token in {token for axis in axes for token in axis.labels}:
        assert token in " ".join(text).split(" ")
    (page,) = reader.pages
    drawn = page.get_contents().get_data().decode("latin-1").partition("/I1 Do")[0]
    *_, placed, _ = re.findall(r"((?:-?[\d.]+ ){6})cm", f"{drawn} 0 0 0 0 0 0 cm")
    across, _, _, down, _, up = map(float, placed.split())
    assert across > 0 and down == -up < 0  # its first row is the lowest of the pixels
    cells = np.asarray(page.images[0].image.convert("RGB"))[::-1]
    weights = trace.attention[kind][2, 1]
    at = np.argwhere(weights)
    y, x = ((at + 0.5) * cells.shape[:2] / weights.shape).astype(int).T
    assert np.abs(weight_of(cells[y, x]) - weights[tuple(at.T)]).max() <= NEAR
    for font in page["/Resources"]["/Font"].values():  # TrueType, so that text is text
        (inner,) = font.get_object()["/DescendantFonts"]
        assert "/FontFile2" in inner.get_object()["/FontDescriptor"]


def tiles_of(pixels, place, heads):
    """Place on the sheet, pixels and weights of each tile of one kind, in layer and head order."""
    layers, count = heads.shape[:2]
    gap = figures.TILE_GAP * figures.SHARP
    down, across = pixels.shape[0] // layers, pixels.shape[1] // count
    for layer in range(layers):
        for head in range(count):
            y, x = layer * down, head * across
            tile = pixels[y : (layer + 1) * down - gap, x : (head + 1) * across - gap]
            size = np.array([x, y, tile.shape[1], tile.shape[0]]) / figures.SHARP
            yield size + np.array([*place[:2], 0, 0]), tile, heads[layer, head]


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_grid_has_every_head_of_a_kind_where_its_name_says(trace, kind):
    svg, heads = pictures.grid(view_of(trace, kind), "svg"), trace.attention[kind]
    (pixels, place), _ = images_of(svg)
    boxes = np.concatenate([*hatched(svg), np.zeros((0, 4))])
    for box, tile, weights in tiles_of(pixels, place, heads):
        seen = cells_of(tile, *weights.shape)
        assert np.abs(np.nan_to_num(seen) - weights).max() <= NEAR
        assert (np.isnan(seen) == (weights == 0)).all()
        masked = hatched_cells(boxes, box, *weights.shape)
        assert (masked == (weights == 0)).all()
    texts = shown_texts(svg)
    assert {"layer 4", "head 4", "weight"} <= {*texts}
    assert ("Hatched: masked." in texts) == (kind == "decoder")
    query, key = (side.title for side in trace.sides_of(kind))
    assert f"rows: query ({query}) · columns: key ({key})" in texts
    assert f"{key.capitalize()}: " + "\u00a0 ".join(trace.texts_of(kind)[1].tokens) in texts


def test_a_long_grid_pauses_at_every_tile_and_measures_no_text_that_is_not_drawn(
    trace, monkeypatch
):
    """So that it ends soon once nobody waits for it."""
    pauses, measured, width = [], [], figures.Sheet.width
    monkeypatch.setattr(
        figures.Sheet, "width", lambda *args, **kw: measured.append(args[1]) or width(*args, **kw)
    )
    view = view_of(trace)
    with pausing(lambda done, total: pauses.append(done)):
        pictures.grid(view, "svg")
    assert len(pauses) >= math.prod(trace.attention["cross"].shape[:2])
    before = len(measured)
    with figures.sheet("svg", "A long text") as drawing:
        lines = drawing.wrapped(["word " * 5000], 400, 12, most=4)
    assert len(lines) == 4 and lines[-1].endswith("…") and "…" not in "".join(lines[:-1])
    assert len(measured) - before < 200
    assert lines[:3] == drawing.wrapped(["word " * 500], 400, 12)[:3]


def test_layers_are_called_as_the_model_calls_them():
    weights = np.full((2, 2, 3, 3), 1 / 3)
    part = figures.Tiles("text", "text", weights, [3, 6])
    svg = figures.grid("svg", "", "All", part, {}, "weight")
    assert {"layer 3", "layer 6"} <= {*shown_texts(svg)} and "layer 1" not in shown_texts(svg)


def test_what_is_hidden_is_said_and_is_not_masked(trace):
    reading = Reading(average="heads", words=True, special="hide", least=0.1)
    figure = Figure(trace, "cross", 2, 1, reading=reading)
    svg = figure.drawn("svg", 0.0)
    assert "mean over heads" in figure.caption().lower()
    assert "Tokens are merged into words" in figure.caption()
    assert "Weights below 0.1 are hidden" in figure.caption()
    assert "</s>" not in shown_texts(svg) and not hatched(svg)
    (pixels, _), _ = images_of(svg)
    weights = reading.apply(trace.attention["cross"], 2, 1, *trace.texts_of("cross")).weights
    assert np.abs(cells_of(pixels, *weights.shape) - weights).max() <= NEAR
    weights = trace.attention["decoder"]
    for whole in (False, True):
        svg = Figure(trace, "decoder", 2, 1, whole=whole, reading=Reading(least=0.1)).drawn(
            "svg", 0.0
        )
        (pixels, place), _ = images_of(svg)
        layer, head = (0, 0) if whole else (2, 1)
        if whole:
            place, pixels, _ = next(tiles_of(pixels, place, weights))
        clear = np.isnan(cells_of(pixels, *weights.shape[2:]))
        assert (clear == (weights[layer, head] == 0)).all()
        boxes = np.concatenate(hatched(svg))
        assert (hatched_cells(boxes, place, *weights.shape[2:]) == clear).all()


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("make", long_but([pictures.head], [pictures.head, pictures.grid]))
def test_the_same_view_is_the_same_file_from_any_session(trace, make, ending):
    view, other = view_of(trace), view_of(trace, "decoder")
    expected = make(view, ending)
    with ThreadPoolExecutor(2) as sessions:
        same, different = sessions.map(lambda seen: make(seen, ending), [view, other])
    assert same == expected != different


def test_a_row_that_may_look_at_nothing_is_hatched():
    nothing = load("en-de").trace("A dog.", "Ein Hund.", Masks(causal=False), pad_to=8)
    empty = {"cross": nothing.attention["cross"] * (np.arange(8) > 2)[:, None]}
    svg, weights = pictures.head(view_of(replace(nothing, attention=empty)), "svg"), empty["cross"]
    (pixels, place), _ = images_of(svg)
    size = weights.shape[2:]
    clear = np.isnan(cells_of(pixels, *size))
    assert clear[:3].all() and (clear == (weights[2, 1] == 0)).all()
    path, _ = hatched(svg)  # and that of the legend
    assert (hatched_cells(path, place, *size) == clear).all()


def test_masked_regions_are_few_rectangles():
    causal = ~np.tri(64, dtype=bool)
    assert len(figures.regions(causal)) == 63
    padded = np.zeros((64, 64), bool)
    padded[:, 50:] = True
    assert figures.regions(padded).tolist() == [[50, 0, 14, 64]]
    chance = np.random.default_rng(0).random((9, 7)) < 0.5
    found = np.zeros_like(chance, dtype=int)
    for x, y, width, height in figures.regions(chance):
        found[y : y + height, x : x + width] += 1
    assert (found == chance).all()


def test_hostile_tokens_are_text_in_pictures(hostile):
    named = replace(hostile, settings=hostile.settings | {"model": "<b>$x$\x00&", "source": "\x85"})
    everywhere = {"</script><img", "U+0000", "$x^2$", "\\alpha_1^2"}
    others = {"שלום", "中文", "مرحبا", "e\u0301\u0323", "U+202Egnp", "U+FFFE"}
    for make in (pictures.head, pictures.grid):
        svg = make(named, "svg")
        root = ElementTree.fromstring(svg)
        drawn = {element.tag.removeprefix(SVG) for element in root.iter() if SVG in element.tag}
        allowed = "svg title metadata defs style clipPath pattern rect path g image text"
        assert drawn <= {*allowed.split()}
        assert not any(name.startswith("on") for element in root.iter() for name in element.attrib)
        shown = "".join(shown_texts(svg))
        assert [token for token in everywhere | others if token not in shown] == []
        image, pdf = Image.open(io.BytesIO(make(named, "png"))), make(named, "pdf")
        image.load()
        of_pdf = PdfReader(io.BytesIO(pdf)).metadata.subject
        kept = [root.find(DESCRIPTION).text, image.text["headlight"], of_pdf]
        assert all(map(caption, kept))
        assert [token for token in everywhere if token not in pdf_text(pdf)] == []


def test_hostile_tokens_are_data_in_the_page(hostile):
    page = pictures.page(hostile).decode()
    assert "onerror" not in page and page.count("<script") == 4
    assert not any(f"{scheme}://" in page for scheme in ("http", "https"))
    assert b"onerror" in inflated(page, "run")


def test_letters_without_a_font_are_written_by_their_code():
    for ending, shown in (("png", "aU+AC00"), ("pdf", "aU+AC00")):
        with figures.sheet(ending, "") as drawing:
            assert drawing._lettered("Müller ← „größer“ Жя") == "Müller ← „größer“ Жя"
            assert drawing._lettered("a\U000f5555") == "aU+F5555"
            others = figures.other_fonts(ending == "pdf")
            assert drawing._lettered("a가") == ("a가" if "가" in others else shown)
    axis = Axis("query", ["a가"])
    weights = np.ones((1, 1), np.float32)
    assert "a가" in shown_texts(figures.head("svg", "", "", weights, axis, axis))


def test_a_font_that_has_the_letters_is_chosen():
    """STIX comes with Matplotlib and has letters that DejaVu Sans lacks."""
    with figures.sheet("pdf", "") as drawing:
        others = figures.other_fonts(True)
        letter = next(c for c in sorted(others) if others[c] not in (figures.FAMILY, "LastResort")
                      and c not in figures.letters(figures.FAMILY) and c.isprintable())  # fmt: skip
        assert drawing._font(letter, 12, False).get_family() == [figures.FAMILY, others[letter]]
    axis = Axis("query", [f"x{letter}"])
    weights = np.ones((1, 1), np.float32)
    assert f"x{letter}" in pdf_text(figures.head("pdf", "", "", weights, axis, axis))


def test_a_long_text_in_the_grid_shows_its_largest_weights():
    text = " ".join(["A man runs."] * 60)
    trace = load("en-de").trace(text, "Ein Mann.")
    size = len(trace.src.tokens)
    every = -(-size // figures.MOST_CELLS)
    assert every > 1
    view = view_of(trace, "encoder")
    svg, said = pictures.grid(view, "svg"), pictures.printed(view, whole=True).caption()
    assert f"Each cell shows the largest of up to {every} × {every} weights." in said
    (pixels, place), _ = images_of(svg)
    _, tile, weights = next(tiles_of(pixels, place, trace.attention["encoder"]))
    side = -(-size // every)
    seen = cells_of(tile, side, side)
    largest = [[weights[y : y + every, x : x + every].max() for x in range(0, size, every)]
               for y in range(0, size, every)]  # fmt: skip
    assert np.abs(seen - largest).max() <= NEAR
    source = [line for line in shown_texts(svg) if line.endswith("…")]
    assert len(source) == 1  # a text of many lines is cut
    assert float(ElementTree.fromstring(svg).get("width").removesuffix("pt")) < 2000


SIDES = [
    (1, 1), (2, 3), (1, 40), (40, 1), (3, 2),
    *[pytest.param((rows, columns), marks=pytest.mark.long) for rows in range(1, 9)
      for columns in range(1, 9)],
]  # fmt: skip


@pytest.mark.parametrize("sides", SIDES)
def test_no_text_is_cut_at_the_edge_or_lies_over_another(sides):
    """However few tokens there are: the same picture with more room around it has no more ink."""
    names = "y (target, about to be written)", "x (source, as the encoder read it)"
    axes = [Axis(name, ["a"] * count) for name, count in zip(names, sides, strict=True)]
    title = "Cross-attention from the decoder to the encoder, layer 1, head 1, of a long name"
    with pytest.MonkeyPatch.context() as patch:
        boxes = written_at(patch)
        png = figures.head("png", "{}", title, np.ones(sides) / sides[1], *axes)
    picture = np.asarray(Image.open(io.BytesIO(png)).convert("L"))
    edge = [picture[:4], picture[-4:], picture[:, :4].T, picture[:, -4:].T]
    assert all((side == 255).all() for side in edge)
    assert len(boxes) >= 4 + sum(len(figures.ticks(axis, 34)) for axis in axes)
    for i, (left, top, right, bottom) in enumerate(boxes):
        for over in boxes[:i]:
            apart = left >= over[2] or over[0] >= right or top >= over[3] or over[1] >= bottom
            assert apart, (boxes[i], over)


def written_at(patch) -> list:
    """Where the texts of the next picture stand, as Matplotlib measures them when it draws."""
    from matplotlib.text import Text

    boxes, draw = [], Text.draw

    def drawn(self, renderer, *more, **how):
        draw(self, renderer, *more, **how)
        if self.get_text():
            x0, y0, x1, y1 = self.get_window_extent(renderer).extents
            boxes.append((x0 + 1, -y1 + 1, x1 - 1, -y0 - 1))

    patch.setattr(Text, "draw", drawn)
    return boxes
