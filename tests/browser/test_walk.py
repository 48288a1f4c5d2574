"""Every page once: nothing serious for axe-core, in light and dark, and nothing wider than the
page, on a laptop, on a wide screen and for a projector."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import PAGES

pytestmark = pytest.mark.browser
OURS = [  # Streamlit answers for its own widgets
    ".st-key-head_grid",
    ".st-key-copy_link",
    ".st-key-look_up",
    ".st-key-head_plane",
    ".st-key-model_map",
    ".hl-tokens",
    ".hl-merges",
    "[class*=_figure]",
    ".stMarkdown",
    ".stHeading",
    "[data-testid=stCaptionContainer]",
]
# A figure takes its new width a moment after the page.
FITS = """(pictures) => {
  const below = (root) => [root, ...[...root.querySelectorAll("*")]
    .flatMap((node) => node.shadowRoot ? below(node.shadowRoot) : [])];
  const roots = below(document);
  const all = (selector) => roots.flatMap((root) => [...root.querySelectorAll(selector)]);
  const [page, frames] = [all(".stMain, .stMainBlockContainer"), all(".frame")];
  return page.length === 2 && frames.length === pictures &&
    [...page, ...frames].every((box) => box.scrollWidth <= box.clientWidth + 1);
}"""
PICTURES = {  # of components, by page
    "Attention": 1,
    "Generate": 1,
    "Architecture": 1,
    "Inside a head": 1,
    "Query–key–value": 1,
}


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
def test_nothing_serious_and_nothing_wider_than_the_page(visit, scheme):
    visit.page.emulate_media(color_scheme=scheme)
    visit.open()
    for projector in (False, True) if scheme == "light" else (False,):
        if projector:
            visit.open("?projector=true")
        for title in PAGES:
            visit.go(title)
            visit.expect_well()
            if not projector:
                assert not serious(visit), title
            if scheme == "dark":
                continue
            for width in (1920, 1280):
                visit.page.set_viewport_size({"width": width, "height": 900})
                visit.page.wait_for_function(FITS, arg=PICTURES.get(title, 0), timeout=30_000)
