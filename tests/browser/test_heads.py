"""The page Heads: a table to sort and to select in, and the card beside it."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from headlight.app.state.lines import lines_of
from headlight.model import load
from headlight.model.analysis.head_metrics import measured
from tests.conftest import ROOT

pytestmark = pytest.mark.browser
SENTENCE = "A dog runs."
TOP, ROW = 41, 44  # as in app/views/heads.py


@pytest.fixture
def heads(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    visit.open(f"heads?source={SENTENCE.replace(' ', '+')}&measured_on=This+sentence")
    return visit


def click(heads, row, x=16):
    """A row of the table counted from 0, or with -1 the head of a column."""
    box = heads.page.get_by_test_id("stDataFrame").bounding_box()
    y = TOP / 2 if row < 0 else TOP + (row + 0.5) * ROW
    heads.page.mouse.click(box["x"] + x, box["y"] + y)
    return heads.idle()


def card(heads, title):
    name = heads.page.locator(".st-key-panel strong", has_text=title)
    expect(name).to_be_visible()
    expect(name).to_be_in_viewport(ratio=1)


def test_bar_and_rows_select_a_head_and_a_pattern_changes_the_table(heads):
    heads.choose("kind", "encoder")  # before any row was clicked
    card(heads, "Encoder self-attention, layer 3, head 3")
    heads.choose("layer", 2)
    card(heads, "Encoder self-attention, layer 2, head 3")
    click(heads, 2, x=345)  # anywhere in a row; below the head of the opening
    card(heads, "Encoder self-attention, layer 1, head 2")
    # Streamlit writes the address a moment after the page.
    heads.page.wait_for_url(lambda url: "kind=encoder" in url and "head=2" in url)
    table = heads.page.get_by_test_id("stDataFrame")
    assert table.bounding_box()["y"] + TOP + 3 * ROW < 720
    assert heads.page.evaluate("document.querySelector('.stMain').scrollTop") == 0
    heads.choose("kind", "decoder")
    card(heads, "Decoder self-attention, layer 1, head 2")
    click(heads, 1)
    card(heads, "Encoder self-attention, layer 1, head 1")
    before = heads.page.screenshot()
    box = heads.page.locator(".st-key-pattern").get_by_role("combobox")
    box.fill("previous token")
    box.press("Enter")
    heads.idle()
    assert "pattern=previous+token" in heads.page.url
    assert heads.page.screenshot() != before


def fills_the_window(heads, picture):
    """Wait until a picture reaches almost to the bottom of a small and then of a large window."""
    for width, height in ((1280, 720), (1920, 1080)):
        heads.page.set_viewport_size({"width": width, "height": height})
        heads.page.wait_for_function(
            "([picture, height]) => { const { bottom } = picture.getBoundingClientRect();"
            " return 0.9 * height < bottom && bottom <= height; }",
            arg=[picture.element_handle(), height],
        )


def test_a_long_table_fills_the_window(heads):
    fills_the_window(heads, heads.page.get_by_test_id("stDataFrame"))


def test_the_scatter_plot_fills_the_window(heads):
    heads.choose("measured_on", "Survey")
    heads.choose("heads_as", "Scatter")
    fills_the_window(heads, heads.page.locator(".st-key-heads_figure .main-svg").first)


def test_after_sorting_a_row_is_still_its_own_head(heads):
    scores = {
        (kind, layer, head): max(float(of[layer, head]) for of in one.scores.values())
        for kind, one in measured(load("en-fr").trace(SENTENCE)).items()
        for layer, head in np.ndindex(4, 4)
    }
    click(heads, -1, x=345)
    click(heads, 0)
    kind, layer, head = min(scores, key=scores.get)
    title = {"cross": "Cross-attention"}.get(kind, f"{kind.capitalize()} self-attention")
    card(heads, f"{title}, layer {layer + 1}, head {head + 1}")
    heads.screenshot("heads-sorted")


def test_a_point_selects_its_head(heads):
    heads.choose("measured_on", "Survey")
    heads.choose("heads_as", "Scatter")
    before = heads.page.url
    point = heads.page.locator(".st-key-heads_figure .scatterlayer .point").nth(5).bounding_box()
    heads.page.mouse.click(point["x"] + point["width"] / 2, point["y"] + point["height"] / 2)
    heads.idle()
    heads.page.wait_for_url(lambda url: url != before and "head=" in url)


def test_a_sentence_is_a_click_away(heads):
    heads.choose("heads_as", "Sentences")
    click(heads, 1, x=345)
    line = heads.page.locator(".st-key-source textarea")
    expect(line).to_have_value(re.compile(f"^{SENTENCE}\n.+"))  # one's own stays
    _, taken = line.input_value().split("\n")
    assert taken in lines_of((ROOT / "assets" / "examples" / "en-fr.txt").read_text())
    heads.page.get_by_role("link", name="Open Attention").click()
    heads.idle()
    expect(heads.page.locator(".st-key-head_grid")).to_be_visible()
    assert line.input_value() == f"{SENTENCE}\n{taken}"
