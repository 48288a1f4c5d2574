"""Every page for those who do not point: axe-core in every look, and the way to the grid by Tab."""

import pytest

from tests.browser.conftest import PAGES
from tests.browser.test_walk import serious

pytestmark = pytest.mark.long
LOOKS = {  # name → width, height, colour scheme, projector
    "light": (1280, 720, "light", False),
    "dark": (1280, 720, "dark", False),
    "projector": (1280, 720, "light", True),
    "phone": (390, 844, "light", False),
}
SKIPPED, TABS = 3, 20  # presses of Tab up to the grid: by the skip link, and without
IN_GRID = """() => {
  let node = document.activeElement;
  while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
  return node?.classList.contains("stage") ?? false;
}"""


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_serious_on_any_page(visit, look):
    width, height, scheme, projector = LOOKS[look]
    visit.page.set_viewport_size({"width": width, "height": height})
    visit.page.emulate_media(color_scheme=scheme)
    found = {}
    for title, path in PAGES.items():
        visit.open(f"{path}?projector={str(projector).lower()}&draw=true")
        if rules := serious(visit):
            found[title] = rules
    assert not found


def tabs(visit, most: int) -> int | None:
    """Presses of Tab from the top of the page until the grid has the keyboard."""
    for count in range(1, most + 1):
        visit.page.keyboard.press("Tab")
        if visit.page.evaluate(IN_GRID):
            return count
    return None


def test_the_grid_is_few_tabs_away(visit):
    visit.open()
    assert (tabs(visit, 60) or 61) <= TABS


def test_a_skip_link_leads_to_the_grid(visit):
    visit.open()
    visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("Enter")
    assert (tabs(visit, 60) or 61) + 1 <= SKIPPED
