"""What is taken away, read back by those it is for: pandas, NumPy, Pillow and an XML parser."""

import base64
import io
import json
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from pyarrow import parquet

from app import exports, labels, pictures, theme
from app.components.packing import Look, order
from app.settings import complete
from model import load
from model.analysis.reading import Reading
from model.masks import Masks
from model.tokenizer import Encoding
from tests.conftest import ROOT

SVG = "{http://www.w3.org/2000/svg}"
NEAR = 1.5 / 255  # neighbours among the 256 colours may be equal
HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "=1+1",
    "]]>&amp;\"'",
    "שלום",
    "🙂",
    "\x00\x08\x1b",
    "a,b\n\"c\"",
    "\u202egnp",
    "NA",
]  # fmt: skip


@pytest.fixture(scope="module")
def trace():
    return load("en-de").trace("A man in a blue shirt is standing on a ladder.")


def view_of(trace, kind="cross", layer=2, head=1, reading=Reading(), **looks) -> exports.View:
    chosen = {"kind": kind, "layer": layer + 1, "head": head + 1, "model": "en-de", "source": "A"}
    seen = {"show": "all", "scale": "linear", "order": {}} | looks
    focus = {"kind": kind, "layer": layer, "head": head}
    shown = Look(
        focus=focus, average=reading.average, least=reading.least, palette=theme.WEIGHTS,
        colour=theme.FOCUS, **seen,
    )  # fmt: skip
    return exports.View(trace, complete(chosen), reading, shown)


@pytest.fixture(scope="module")
def view(trace):
    return view_of(trace)


@pytest.fixture(scope="module")
def hostile(trace):
    """The same weights, of pieces that nobody tokenised so."""

    def side(encoding):
        tokens = [HOSTILE[i % len(HOSTILE)] for i in range(len(encoding.ids))]
        return Encoding(encoding.ids, tuple(tokens), encoding.offsets)

    return view_of(replace(trace, texts={name: side(text) for name, text in trace.texts.items()}))


def weight_of(colour) -> np.ndarray:
    """The weight that a colour stands for, (.., 3) → (..)."""
    scale = pictures.colours(np.linspace(0, 1, 256))[:, :3].astype(int)
    far = np.abs(np.asarray(colour, dtype=int)[..., None, :] - scale).sum(-1)
    assert (far.min(-1) == 0).all(), "not a colour of the scale"
    return far.argmin(-1) / 255


def cells_of(group) -> np.ndarray:
    """Weights of a group of rectangles; NaN where there is none."""
    found = {}
    for rect in group:
        y, x, width = (int(rect.get(name)) for name in ("y", "x", "width"))
        colour = [int(rect.get("fill")[i : i + 2], 16) for i in (1, 3, 5)]
        for column in range(x, x + width):
            found[y, column] = weight_of(colour)
    rows, columns = np.max(list(found), axis=0) + 1
    return np.array([[found.get((y, x), np.nan) for x in range(columns)] for y in range(rows)])


def shown_texts(svg: bytes) -> list[str]:
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_nobody_needs_streamlit_for_them():
    code = "import sys, app.evidence; sys.exit('streamlit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_the_head_as_svg_has_its_weights_pieces_and_settings(trace, view):
    svg = exports.head_svg(view)
    root = ElementTree.fromstring(svg)
    cells, scale = root.findall(f"{SVG}g")
    assert np.abs(cells_of(cells) - trace.attention["cross"][2, 1]).max() <= NEAR
    assert np.diff(cells_of(scale)[:, 0]).max() < 0  # the legend, 1 above and 0 below
    texts = shown_texts(svg)
    assert texts[0] == root.find(f"{SVG}title").text == "Cross-attention, layer 3, head 2"
    assert "who asks (target)" in texts and "who is looked at (source)" in texts
    assert "Model en-de" in texts and "weight" in texts
    tokens = [*trace.tgt.tokens, *trace.src.tokens]
    at = texts.index(trace.tgt.tokens[0])
    assert texts[at : at + len(tokens)] == tokens
    assert json.loads(root.find(f"{SVG}metadata").text) == view.settings


def test_the_head_as_png_has_its_weights_and_settings(trace, view):
    image = Image.open(io.BytesIO(exports.head_png(view)))
    assert json.loads(image.text["headlight"]) == view.settings
    shape = next(s for s in exports.head_drawing(view).shapes if isinstance(s, pictures.Cells))
    weights = trace.attention["cross"][2, 1]
    pixels = np.asarray(image)
    rows, columns = (
        ((start + (np.arange(count) + 0.5) * size / count) * pictures.SHARP).astype(int)
        for start, count, size in zip(
            (shape.y, shape.x), weights.shape, (shape.height, shape.width), strict=True
        )
    )
    seen = weight_of(pixels[np.ix_(rows, columns)])
    assert np.abs(seen - weights).max() <= NEAR


@pytest.mark.parametrize("scale", exports.LEGENDS)
def test_the_grid_has_every_head_where_its_name_says(trace, scale):
    svg = exports.grid_svg(view_of(trace, scale=scale))
    groups = ElementTree.fromstring(svg).findall(f"{SVG}g")
    heads = [head for kind in trace.attention.values() for layer in kind for head in layer]
    assert len(groups) == len(heads) + 1
    for group, weights in zip(groups, heads, strict=False):
        seen = cells_of(group)
        expected = exports._scaled(weights, scale, 0)
        assert np.abs(np.nan_to_num(seen) - expected).max() <= NEAR
        if np.isnan(seen).any():  # masked, and the rest is not
            assert (np.isnan(seen) == (weights == 0)).all()
    assert exports.LEGENDS[scale] in shown_texts(svg)


def test_the_grid_keeps_its_order_and_one_kind(trace):
    values = np.arange(16.0)[::-1].reshape(4, 4)
    chosen = {"cross": order(values, "{:.1f} bits")}
    drawing = exports.grid_drawing(view_of(trace, show="one kind", order=chosen))
    cells = [s for s in drawing.shapes if isinstance(s, pictures.Cells)][:16]
    first = min(cells, key=lambda cell: (cell.y, cell.x))
    expected = pictures.colours(trace.attention["cross"][3, 3])
    assert (first.colours == expected).all()
    assert "4·4  0.0 bits" in [s.text for s in drawing.shapes if isinstance(s, pictures.Text)]
    assert Image.open(io.BytesIO(pictures.png(drawing, ""))).size == (
        round(drawing.width * 2), round(drawing.height * 2),
    )  # fmt: skip


def test_what_is_hidden_is_said_and_what_is_masked_is_blank(trace):
    reading = Reading(average="heads", words=True, special="hide", least=0.1)
    seen = view_of(trace, reading=reading)
    texts = " ".join(shown_texts(exports.head_svg(seen)))
    assert "mean over its heads" in texts and "Pieces are merged into words" in texts
    assert "</s>" not in texts
    picture = seen.picture
    cells = next(s for s in exports.head_drawing(seen).shapes if isinstance(s, pictures.Cells))
    assert cells.colours.shape[:2] == picture.weights.shape
    decoder = view_of(trace, kind="decoder", reading=Reading(least=0.1), show="one kind")
    tile = next(s for s in exports.grid_drawing(decoder).shapes if isinstance(s, pictures.Cells))
    blank = tile.colours[..., 3] == 0
    assert (blank == (trace.attention["decoder"][0, 0] == 0)).all()  # hidden ones are not
    assert "drawn as 0" in " ".join(shown_texts(exports.grid_svg(decoder)))


def test_a_row_that_may_look_at_nothing_is_blank():
    nothing = load("en-de").trace("A dog.", "Ein Hund.", Masks(causal=False), pad_to=8)
    empty = {"cross": nothing.attention["cross"] * (np.arange(8) > 2)[:, None]}
    drawing = exports.head_drawing(view_of(replace(nothing, attention=empty)))
    cells = next(s for s in drawing.shapes if isinstance(s, pictures.Cells))
    assert not cells.colours[:3].any() and (cells.colours[3:, :, 3] == 255).all()


@pytest.mark.parametrize("one", [False, True])
def test_tables_say_the_same_as_the_trace(trace, view, one):
    expected = trace.to_dataframe()
    if one:
        of = (expected.attention == "cross") & (expected.layer == 3) & (expected["head"] == 2)
        expected = expected[of].reset_index(drop=True)
    as_csv = pd.read_csv(io.BytesIO(exports.csv(view, one)), keep_default_na=False)
    as_parquet = pd.read_parquet(io.BytesIO(exports.parquet(view, one)))
    for found, tolerance in ((as_csv, 1e-8), (as_parquet, 0)):
        assert (found.pop("sentence") == 1).all()
        assert list(found) == list(expected)
        for column in expected:
            if column == "weight":
                assert np.abs(found[column] - expected[column]).max() <= tolerance
            else:
                assert found[column].tolist() == expected[column].tolist()
    held = parquet.read_metadata(io.BytesIO(exports.parquet(view, one))).metadata
    assert json.loads(held[b"headlight"]) == view.settings


def test_numpy_reads_weights_pieces_and_settings(trace, view):
    with np.load(io.BytesIO(exports.npz(view)), allow_pickle=False) as found:
        assert set(found) == {*trace.attention, "source", "target", "settings"}
        for kind, weights in trace.attention.items():
            assert (found[kind] == weights).all() and found[kind].dtype == np.float32
        assert tuple(found["source"]) == trace.src.tokens
        assert json.loads(str(found["settings"])) == view.settings
    with np.load(io.BytesIO(exports.npz(view, one=True)), allow_pickle=False) as found:
        assert (found["cross"] == trace.attention["cross"][2:3, 1:2]).all()
        assert "encoder" not in found


def test_settings_and_names(view):
    assert json.loads(exports.settings_json(view)) == view.settings
    assert exports.stem(view) == "en-de-cross-layer-3-head-2"
    early = replace(view, settings=view.settings | {"model": "paper, untrained", "step": "10"})
    assert exports.stem(early, "all-heads") == "paper-untrained-step-10-all-heads"
    climbing = replace(view, settings=view.settings | {"model": "../../etc"})
    assert exports.stem(climbing).startswith("etc-cross")
    mean = replace(view, reading=Reading(average="heads"))
    assert exports.stem(mean) == "en-de-cross-layer-3-mean-over-heads"
    changed = replace(view, settings=view.settings | {"causal": False, "pad_to": 9})
    assert exports.about(changed) == ["Model en-de · without the causal mask · padded to 9 tokens"]


def test_hostile_pieces_are_text_in_pictures(hostile):
    for make in (exports.head_svg, exports.grid_svg):
        root = ElementTree.fromstring(make(hostile))
        assert {element.tag for element in root.iter()} <= {
            f"{SVG}{name}" for name in ("svg", "title", "metadata", "rect", "text", "g")
        }
        assert not any(name.startswith("on") for element in root.iter() for name in element.attrib)
        shown = "".join(shown_texts(make(hostile)))
        assert "</script><img" in shown and "שלום" in shown and "U+0000" in shown
    for make in (exports.head_png, exports.grid_png):
        Image.open(io.BytesIO(make(hostile))).verify()


def test_hostile_pieces_are_text_in_tables(hostile):
    expected = list(hostile.trace.src.tokens)
    found = pd.read_parquet(io.BytesIO(exports.parquet(hostile, one=True)))
    assert found.key_piece[: len(expected)].tolist() == expected
    table = exports.csv(view_of(hostile.trace), one=True)
    assert b",=1+1," not in table and b",'=1+1," in table
    text = pd.read_csv(io.BytesIO(table), keep_default_na=False, lineterminator="\n")
    safe = ["'=1+1" if token == "=1+1" else token.replace("\0", "") for token in expected]
    assert text.key_piece[: len(expected)].tolist() == safe


def test_hostile_pieces_are_data_in_the_page(hostile):
    page = exports.page(hostile).decode()
    assert "onerror" not in page and page.count("<script") == 3
    assert not any(f"{scheme}://" in page for scheme in ("http", "https"))
    data = page.partition('id="weights">')[2].partition("<")[0]
    assert b"onerror" in base64.b64decode(data)


def test_letters_without_a_font_are_written_by_their_code():
    text, _ = pictures._set("a\U000f5555", 16, False)
    assert text == "aU+F5555"
    assert pictures._set("Müller ← „größer“ Жя", 16, False)[0] == "Müller ← „größer“ Жя"


def test_long_texts_are_drawn_whole_and_small_enough():
    """1,024 × 1,024 weights: as pixels in the SVG, each still there."""
    random = np.random.default_rng(0).random((1024, 1024), dtype=np.float32)
    axis = pictures.Axis("who asks", [f"word{i}" for i in range(1024)])
    drawing = pictures.head("long", [], random, axis, axis)
    svg = pictures.svg(drawing, "")
    (image,) = ElementTree.fromstring(svg).findall(f"{SVG}image")
    data = base64.b64decode(image.get("href").partition(",")[2])
    seen = weight_of(np.asarray(Image.open(io.BytesIO(data)))[::64, ::64, :3])
    assert np.abs(seen - random[::64, ::64]).max() <= NEAR
    assert len(svg) < 6e6
    assert len(ElementTree.fromstring(svg).findall(f"{SVG}text")) < 150
    assert max(Image.open(io.BytesIO(pictures.png(drawing, ""))).size) < 3000


def test_sizes_are_foreseen(view):
    for one in (False, True):
        for ending, make in (("csv", exports.csv), ("npz", exports.npz)):
            foreseen, real = exports.size(view, ending, one), len(make(view, one))
            assert 0.5 < real / foreseen < 2 or real < 10_000
    assert labels.size(3_400_000) == "3 MB" and labels.size(12_300) == "12 kB"
