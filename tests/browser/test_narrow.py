"""A screen 390 pixels wide: the bar is one line that opens. That no page is wider than it is asked
in test_walk.py."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit

pytestmark = pytest.mark.browser
LINE = 50  # pixels


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


def test_the_bar_is_one_line_that_opens(phone):
    phone.open("?kind=cross&layer=3&head=2")
    bar, causal = (phone.page.locator(f".st-key-{key}") for key in ("top_bar", "causal"))
    assert bar.bounding_box()["height"] <= LINE
    expect(phone.page.get_by_role("heading", name="Attention", exact=True)).to_be_visible()
    expect(causal).not_to_be_visible()
    phone.page.get_by_text("Controls").click()
    phone.switch("Causal mask")
    expect(causal).to_be_visible()  # it stays open
    expect(phone.page.get_by_role("button", name="Causal mask off ×")).to_be_visible()
    phone.page.get_by_text("Controls").click()
    assert bar.bounding_box()["height"] <= LINE


def test_the_tiles_of_the_selected_head_are_in_view_and_its_picture_below(phone):
    phone.open("?source=the+dog&kind=cross&layer=3&head=2")
    cross = phone.page.get_by_role("heading", name="Cross-attention", exact=True)
    expect(cross).to_be_in_viewport()
    expect(phone.page.get_by_role("heading", name="layer 3, head 2")).to_be_in_viewport()
