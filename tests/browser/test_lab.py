"""The positions lab, as far as only a browser shows it."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_escape_lets_a_clicked_cell_go(visit):
    visit.open("positions")
    said = visit.page.locator(".stage .finding").get_by_text(re.compile(r"dimension \d"))
    expect(visit.page.locator(".stage .finding")).not_to_be_empty()
    expect(said).to_have_count(0)
    box = visit.page.locator(".st-key-input canvas").bounding_box()
    cell = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    visit.page.mouse.click(*cell)
    expect(said).to_be_visible()
    visit.page.keyboard.press("Escape")
    expect(said).to_have_count(0)
    visit.page.mouse.click(*cell)
    visit.page.keyboard.press("Escape")  # before the page has answered
    visit.idle()
    expect(said).to_have_count(0)
