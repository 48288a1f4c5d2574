"""The positions lab and the page Residual stream, as far as only a browser shows it."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
SECTIONS = ["Wavelengths", "Distance", "Rotation", "Other encodings", "Swap two words"]


def test_a_link_opens_a_section_with_its_settings_below_the_bar(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    visit.open("positions?lab=Rotation&pair=5&k=7")
    expect(visit.page.get_by_text("Moving k = 7 positions")).to_be_visible()
    expect(visit.page.locator(".katex-display").first).to_be_visible()
    expect(visit.page.get_by_role("slider", name="Pair of dimensions")).to_have_value("5")
    below = visit.page.locator(".st-key-page").bounding_box()
    row = visit.page.locator(".st-key-lab_row")
    assert row.bounding_box()["y"] >= below["y"] + below["height"]
    label = row.get_by_text("Pair of dimensions").bounding_box()
    assert label["y"] >= below["y"] + below["height"]
    for section in ["Table and sum", *SECTIONS]:
        button = visit.page.locator(".st-key-lab").get_by_text(section, exact=True)
        expect(button).to_be_in_viewport(ratio=1)


def test_escape_lets_a_clicked_cell_go(visit):
    visit.open("positions")
    said = visit.page.locator(".st-key-finding").get_by_text(re.compile(r"dimension \d"))
    expect(visit.page.locator(".st-key-finding")).not_to_be_empty()
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
