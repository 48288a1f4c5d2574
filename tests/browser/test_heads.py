"""The page Heads: the gallery, its keys and its room, and the table folded below it."""

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
TOP, ROW = 41, 44  # as in app/views/_head_displays.py
SHARE = """() => {
  const { height, width } = window.headlight.gallery.wall.getBoundingClientRect();
  return height * width / innerHeight / innerWidth;
}"""
GLIDES = """() => getComputedStyle(window.headlight.gallery.tiles[0].node).transitionDuration"""
PLACES = """() => window.headlight.gallery.seen.map(({ node }) => {
  const { left, top, right, bottom } = node.getBoundingClientRect();
  return [left, top, right, bottom];
})"""


@pytest.fixture
def gallery(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    visit.page.emulate_media(reduced_motion="reduce")
    visit.open()
    visit.go("Heads")
    expect(visit.page.locator(".st-key-gallery .tile").first).to_be_visible()
    yield visit
    visit.page.emulate_media(reduced_motion="no-preference")


def test_the_gallery_takes_the_window_and_keys_open_a_head(gallery):
    page = gallery.page
    for width, height, share in ((1280, 720, 0.4), (1920, 1080, 0.5)):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function(f"({SHARE})() >= {share}")
        page.wait_for_function("document.querySelector('.stMain').scrollHeight <= innerHeight")
        places = page.evaluate(PLACES)
        assert len(places) == 48 and max(right for *_, right, _ in places) <= width
        for left, top, right, bottom in places:  # none lies on another
            others = [place for place in places if place[:2] != [left, top]]
            assert not any(
                left < other[2] and other[0] < right and top < other[3] and other[1] < bottom
                for other in others
            )
    finding = page.locator(".st-key-gallery .finding:not(.ghost)")
    assert float(finding.evaluate("node => getComputedStyle(node).fontSize")[:-2]) >= 20
    selected = page.locator(".st-key-gallery [aria-current=true]")
    expect(selected).to_have_accessible_name(re.compile("^cross 3.3, aligns 71%, loss without it "))
    selected.focus()
    page.keyboard.press("Home")
    expect(finding).to_contain_text("cross 1.1")
    page.keyboard.press("ArrowDown")
    expect(finding).not_to_contain_text("cross 1.1")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    gallery.idle().expect_head("Cross-attention", 1, 1)
    assert page.url.split("?")[0].endswith("/") and "layer=1" in page.url
    gallery.go("Heads")
    expect(selected).to_have_accessible_name(re.compile("^cross 1.1, "))


def test_chips_leave_some_and_the_others_grow(gallery):
    page = gallery.page
    tiles = page.locator(".st-key-gallery .tile:not(.gone)")
    before = tiles.first.bounding_box()["width"]
    chips = page.locator(".st-key-gallery .chips")
    chips.get_by_role("button", name="Read the neighbours 10").click()
    expect(tiles).to_have_count(10)
    assert tiles.first.bounding_box()["width"] > 1.5 * before
    assert page.evaluate(GLIDES) in ("0s", "")
    expect(chips.get_by_role("button", name="cross 0")).to_be_disabled()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(chips.locator("[aria-pressed=true]")).to_have_text(re.compile("^Spread out"))
    chips.get_by_role("button", name="All").click()
    expect(tiles).to_have_count(48)
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(GLIDES).startswith("0.65s")


@pytest.fixture
def heads(visit):
    """The folded numbers."""
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    source = SENTENCE.replace(" ", "+")
    visit.open(f"heads?source={source}&measured_on=This+sentence&all_heads=true")
    return visit


def click(heads, row, x=16):
    """A row of the table counted from 0, or with -1 the head of a column."""
    table = heads.page.get_by_test_id("stDataFrame")
    table.evaluate("table => table.scrollIntoView({ block: 'end' })")
    heads.page.wait_for_timeout(300)
    box = table.bounding_box()
    y = TOP / 2 if row < 0 else TOP + (row + 0.5) * ROW
    heads.page.mouse.click(box["x"] + x, box["y"] + y)
    return heads.idle()


def test_bar_and_rows_select_a_head_and_a_pattern_changes_the_table(heads):
    heads.choose("kind", "encoder")  # before any row was clicked
    heads.expect_head("Encoder self-attention", 3, 3)
    click(heads, 2, x=345)  # anywhere in a row; below the head of the opening
    heads.expect_head("Encoder self-attention", 1, 2)
    # Streamlit writes the address a moment after the page.
    heads.page.wait_for_url(lambda url: "kind=encoder" in url and "head=2" in url)
    expect(heads.page.locator(".st-key-gallery [aria-current=true]")).to_have_accessible_name(
        re.compile("^encoder 1.2, ")
    )
    before = heads.page.screenshot()
    box = heads.page.locator(".st-key-pattern").get_by_role("combobox")
    box.fill("previous token")
    box.press("Enter")
    heads.idle()
    assert "pattern=previous+token" in heads.page.url
    assert heads.page.screenshot() != before


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
    heads.expect_head(title, layer + 1, head + 1)
    heads.screenshot("heads-sorted")


def test_a_point_selects_its_head(heads):
    heads.choose("measured_on", "Survey")
    heads.choose("heads_as", "Scatter")
    before = heads.page.url
    heads.page.locator(".st-key-heads_figure .main-svg").first.scroll_into_view_if_needed()
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
