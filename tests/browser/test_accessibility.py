"""axe-core finds nothing serious in what we draw, on any page, light or dark."""

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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES.values())
def test_nothing_serious(chromium, app, page, scheme):
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    visit = Visit(context.new_page(), app).open(page)
    present = [[part] for part in OURS if visit.page.locator(part).count()]
    found = Axe().run(visit.page, context={"include": present}).response["violations"]
    serious = {
        rule["id"]: [node["target"] for node in rule["nodes"]]
        for rule in found
        if rule["impact"] in ("serious", "critical")
    }
    assert not serious
    context.close()
