"""Every page once: nothing serious for axe-core, in light and dark, and nothing wider than the
page, on a laptop, on a wide screen and for a projector."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import PAGES, Visit

pytestmark = pytest.mark.browser
OURS = [  # Streamlit answers for its own widgets
    ".st-key-head_grid",
    ".st-key-copy_link",
    ".st-key-look_up",
    ".st-key-head_plane",
    ".hl-pieces",
    "[class*=_figure]",
    ".stMarkdown",
    ".stHeading",
    "[data-testid=stCaptionContainer]",
]
# A figure takes its new width a moment after the page.
FITS = """() => [...document.querySelectorAll(".stMain, .stMainBlockContainer, .frame")]
  .every((box) => box.scrollWidth <= box.clientWidth + 1)"""


def serious(visit) -> dict:
    """What axe-core finds of that kind: rule → where."""
    present = [[part] for part in OURS if visit.page.locator(part).count()]
    found = Axe().run(visit.page, context={"include": present}).response["violations"]
    return {
        rule["id"]: [node["target"] for node in rule["nodes"]]
        for rule in found
        if rule["impact"] in ("serious", "critical")
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_and_nothing_wider_than_the_page(chromium, app, scheme):
    context = chromium.new_context(color_scheme=scheme)
    visit = Visit(context.new_page(), app).open()
    for projector in (False, True) if scheme == "light" else (False,):
        if projector:
            visit.switch("Projector")
        for title in PAGES:
            visit.go(title)
            if not projector:
                assert not serious(visit), title
            if scheme == "dark":
                continue
            for width in (1920, 1280):
                visit.page.set_viewport_size({"width": width, "height": 900})
                visit.page.wait_for_function(FITS, timeout=10_000)
    visit.expect_well()
    context.close()
