"""A screen 390 pixels wide: the bar is three lines, and opens. That no page is wider than it is
asked in test_walk.py."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit

pytestmark = pytest.mark.browser
LINES = 120  # pixels: menu, sentence, title with the views


@pytest.fixture(scope="module")
def tab(chromium, app):
    context = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    yield Visit(context.new_page(), app)
    context.close()


@pytest.fixture
def phone(tab):
    yield tab
    tab.expect_well()
    tab.leave()


def test_the_bar_is_three_lines_and_opens(phone):
    phone.open("?kind=cross&layer=3&head=2")
    bar, state = (phone.page.locator(f".st-key-{key}") for key in ("top_bar", "state"))
    assert bar.bounding_box()["height"] <= LINES
    expect(phone.page.get_by_role("heading", name="Attention", exact=True)).to_be_visible()
    expect(state).not_to_be_visible()
    phone.page.get_by_text("Controls").click()
    for menu in ("example", "projector", "share", "more", "head_picker", "display"):
        box = phone.page.locator(f".st-key-{menu}").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390, menu
    phone.switch("Causal mask")
    expect(state).to_be_visible()  # it stays open
    expect(phone.page.get_by_role("button", name="Causal mask off ×")).to_be_visible()
    phone.page.get_by_text("Controls").click()
    assert bar.bounding_box()["height"] <= LINES


def test_the_tiles_of_the_selected_head_are_in_view_and_its_picture_below(phone):
    phone.open("?source=the+dog&kind=cross&layer=3&head=2")
    cross = phone.page.get_by_role("heading", name="Cross-attention", exact=True)
    expect(cross).to_be_in_viewport()
    expect(phone.page.locator(".selected").get_by_role("img").first).to_be_in_viewport()
    assert phone.page.evaluate("window.headlight.grid.look.focus") == {
        "kind": "cross",
        "layer": 2,
        "head": 1,
    }
