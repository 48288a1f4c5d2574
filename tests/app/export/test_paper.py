"""Figures for a paper, read back by a reader of PDF, Pillow and one of XML."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from pypdf import PdfReader

from headlight import record, show
from headlight.app import theme
from headlight.app.export import figures, paper
from headlight.model import load
from tests.app.export.test_pictures import NEAR, SVG, images_of, shown_texts

TARGET = "Ein Mann in einem blauen Hemd steht auf einer Leiter."


@pytest.fixture(scope="module")
def changed():
    text = "A man in a blue shirt is standing on a ladder."
    return load("en-de").trace(text, TARGET, changes="cross.3.2=temperature:0.5")


def some(layers, heads, length):
    weights = np.random.default_rng(0).random((layers, heads, length, length))
    return weights / weights.sum(axis=-1, keepdims=True)


def drawn(trace, ending, width, **how) -> bytes:
    figure = paper.Figure(trace, *paper.place_of(trace, **how.pop("at", {})), **how)
    return figure.drawn(ending, paper.inches_of(width))


WIDE = [("column", 3.25, False), ("84mm", 3.307, True)]
MORE_WIDE = [pytest.param(*each, marks=pytest.mark.long) for each in (
    ("column", 3.25, True), ("84mm", 3.307, False), ("page", 6.75, False), ("page", 6.75, True),
)]  # fmt: skip


@pytest.mark.parametrize(("width", "inches", "whole"), [*WIDE, *MORE_WIDE])
def test_it_is_as_wide_as_asked(trace, width, inches, whole, tmp_path):
    shown, file = show(trace, "cross", 3, 2), tmp_path / "one.pdf"
    shown.save(file, width, whole)
    (page,) = PdfReader(file).pages
    assert abs(float(page.mediabox.width) / 72 - inches) < 0.01
    words = page.extract_text().split()
    assert {*trace.src.tokens} <= {*words}
    for font in page["/Resources"]["/Font"].values():  # in the file, as TrueType
        (inner,) = font.get_object()["/DescendantFonts"]
        assert "/FontFile2" in inner.get_object()["/FontDescriptor"]
    shown.save(tmp_path / "one.png", width, whole)
    image = Image.open(tmp_path / "one.png")
    assert image.info["dpi"][0] >= 299
    assert abs(image.width / image.info["dpi"][0] - inches) < 0.01
    shown.save(tmp_path / "one.SVG", width, whole)
    root = ElementTree.parse(tmp_path / "one.SVG").getroot()
    assert abs(float(root.get("width").removesuffix("pt")) / 72 - inches) < 0.01


def letters(svg: bytes) -> list[float]:
    """The size of each text, in points."""
    texts = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return [float(re.search(r"([\d.]+)px", text.get("style"))[1]) for text in texts]


SIZES = [(1, 1, 3, False, "1in"), (1, 1, 40, False, "column"), (12, 12, 20, True, "column")]
MORE_SIZES = [pytest.param(*each, marks=pytest.mark.long) for each in (
    (1, 1, 100, False, "84mm"), (2, 4, 10, True, "1.5in"), (2, 32, 20, True, "column"),
)]  # fmt: skip


@pytest.mark.parametrize(("layers", "heads", "length", "whole", "width"), [*SIZES, *MORE_SIZES])
def test_letters_can_be_read_or_the_width_that_would_do_is_named(
    layers, heads, length, whole, width
):
    recorded = record(some(layers, heads, length))
    try:
        svg = drawn(recorded, "svg", width, whole=whole)
    except figures.TooNarrow as told:
        inches, wider = re.search(r"at least ([\d.]+)in wide \((\d+)mm\)", str(told)).groups()
        svg = drawn(recorded, "svg", f"{wider}mm", whole=whole)
        assert min(letters(drawn(recorded, "svg", f"{inches}in", whole=whole))) < 4.7
    else:
        assert length == 20 and heads == 12
    assert min(letters(svg)) >= 4.5


def test_a_column_holds_a_sentence_with_all_its_labels(trace):
    svg = drawn(trace, "svg", "column", at={"kind": "encoder"})
    assert shown_texts(svg).count("ladder") == 2 and min(letters(svg)) >= 6


def test_more_weight_is_more_ink_in_grey_too(trace):
    svg = drawn(trace, "svg", "page", at={"kind": "cross", "layer": 3, "head": 2})
    pixels, _ = images_of(svg)[0]
    weights = trace.attention["cross"][2, 1]
    size = pixels.shape[0] // weights.shape[0]
    grey = pixels[size // 2 :: size, size // 2 :: size, :3] @ [0.299, 0.587, 0.114]
    rank = np.argsort(weights, axis=None)
    assert (np.diff(grey.ravel()[rank]) <= 0.5).all()
    scale = figures.scale()[:, :3] @ [0.299, 0.587, 0.114]
    assert scale[0] > 235 and scale[-1] < 60 and (np.diff(scale[::5]) < 0).all()


def test_numbers_stand_in_their_cells(trace):
    at = {"kind": "decoder", "layer": 2, "head": 3}
    texts = shown_texts(drawn(trace, "svg", "page", at=at, numbers=True))
    weights = trace.attention["decoder"][1, 2]
    wanted = [f"{weight:.2f}" for weight in weights[weights > 0]]
    first = texts.index("weight") - len(wanted) - 2 * len(weights)
    said = texts[first : first + len(wanted)]
    assert [float(text) for text in said] == [float(text) for text in wanted]
    svg = drawn(record(some(1, 1, 60)), "svg", "page", numbers=True)  # where they do not fit
    assert len(shown_texts(svg)) < 60 + 60 + 12


def test_a_difference_is_more_in_blue_and_less_in_red(trace, changed):
    at = {"kind": "cross", "layer": 3, "head": 2}
    svg = drawn(changed, "svg", "page", at=at, minus=trace)
    (pixels, _), _ = images_of(svg)
    more = changed.attention["cross"][2, 1] - trace.attention["cross"][2, 1]
    size = pixels.shape[0] // more.shape[0]
    seen = pixels[size // 2 :: size, size // 2 :: size, :3].astype(int)
    scale = theme.ramp(theme.DIFFERENCES["light"], 256).astype(int)
    place = np.abs(seen[..., None, :] - scale).sum(-1).argmin(-1) / 255
    largest = np.abs(more).max()
    assert np.abs((2 * place - 1) * largest - more).max() <= 3 * NEAR * largest
    texts = shown_texts(svg)
    assert "difference" in texts and f"−{largest:.2g}" in texts
    caption = show(changed, **at, minus=trace).printed.caption()
    assert "Weights with cross.3.2=temperature:0.5 minus" in caption
    with pytest.raises(paper.CannotPrint, match="read different texts"):
        show(trace, minus=load("en-de").trace("A dog."))
    with pytest.raises(paper.CannotPrint, match="different kinds"):
        show(record(some(2, 2, 3)), minus=record(some(2, 3, 3)))


def test_the_caption_says_what_is_shown(trace, changed, tmp_path):
    said = show(changed, "cross", 3, 2).save(tmp_path / "one.pdf")
    title = load("en-de").card["title"]
    for part in ("Weights of cross-attention, layer 3, head 2, of", title, f"“{TARGET}”",
                 "with cross.3.2=temperature:0.5", "queries (target)", "(source)"):  # fmt: skip
        assert part in said
    about = PdfReader(tmp_path / "one.pdf").metadata.subject
    assert json.loads(about) == {"caption": said}
    assert "Hatched: masked." in show(trace, "decoder").printed.caption()


@pytest.mark.parametrize(
    ("name", "width", "says"),
    [("one.gif", "column", r"one\.gif must end in \.html, \.svg, \.pdf, \.png"),
     ("one.pdf", "wide", "“wide” is no width"), ("one.pdf", "nanin", "“nanin” is no width"),
     ("no/one.pdf", "page", "cannot be written: No such file"), ("", "page", "must end in")],
)  # fmt: skip
def test_what_cannot_be_drawn_gets_a_sentence(trace, tmp_path, name, width, says):
    with pytest.raises(ValueError, match=says) as told:
        show(trace).save(tmp_path / name, width)
    assert len(str(told.value)) <= 300 and not [*tmp_path.iterdir()]
