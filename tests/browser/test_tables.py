"""Tables of heads: a click anywhere in a row selects its head, not only in the box at its left."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
NUMBERS = {  # page → how a row names its head
    "alignment": r"^(\d)(\d)",
}


@pytest.mark.parametrize("page", NUMBERS)
def test_a_click_on_a_cell_selects_the_head_of_its_row(visit, page):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    visit.open(f"{page}?source=A+dog+runs.&kind=encoder")
    table = visit.page.get_by_test_id("stDataFrame")
    expect(table.locator("canvas tr").nth(3)).to_be_attached()
    rows = [text for text in table.locator("canvas tr").all_text_contents()[1:]]
    named = [re.search(NUMBERS[page], text) for text in rows]
    wanted = [i for i, found in enumerate(named) if found and found.groups() != ("3", "3")][1]
    table.scroll_into_view_if_needed()
    visit.page.wait_for_timeout(300)  # it glides
    box = table.bounding_box()
    visit.page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 39 + 37 * (wanted + 0.5))
    layer, head = named[wanted].groups()
    switch = visit.page.get_by_text(f"Switch off head {layer}.{head}")
    expect(switch.filter(visible=True).first).to_be_visible()
