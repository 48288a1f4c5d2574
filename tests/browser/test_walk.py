"""Every page once, reached by the header: in light and dark, on a laptop, on a phone and in Present
it is painted, nothing is cut, wider than the page or over something else, nothing failed, and
axe-core finds nothing serious. And the way to the picture by Tab."""

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from headlight.app.state import pages
from headlight.app.theme import INK
from tests.browser.conftest import HEADER, PAGES, on_paper

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]  # each test visits many pages
PICTURES = {page.title: page.picture for page in pages.MENU}
OURS = [  # Streamlit answers for its own widgets
    *{HEADER, *(picture for picture in PICTURES.values() if picture.startswith(".st-key-"))},
    ".st-key-menu",
    ".st-key-copy_link",
    ".st-key-lesson_region",
    ".hl-tokens",
    ".hl-merges",
    "[class*=_figure]",
    ".stMarkdown",
    ".stHeading",
    "[data-testid=stCaptionContainer]",
]
# What is wrong with the page as it stands. A figure takes its new width a moment after the page;
# its labels then find their places: they stand side by side, turned ones by their boxes too.
FITS = """(picture) => {
  const below = (root) => [root, ...[...root.querySelectorAll("*")]
    .flatMap((node) => node.shadowRoot ? below(node.shadowRoot) : [])];
  const roots = below(document);
  const all = (selector) => roots.flatMap((root) => [...root.querySelectorAll(selector)])
    .filter((node) => node.checkVisibility({ visibilityProperty: true }));
  const box = (node) => node.getBoundingClientRect();
  const meet = (a, b) => Math.min(Math.min(a.right, b.right) - Math.max(a.left, b.left),
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)) > 1;
  const faults = [];
  if (!all(picture).some((node) => box(node).height > 20) && picture !== "HEADER")
    faults.push(`no ${picture}`); // the stage stands outside of the flow
  for (const node of all(".stMain, .stMainBlockContainer, .frame, .top, .words, .line, .finding"))
    if (node.scrollWidth > node.clientWidth + 1) faults.push(`wide ${node.className}`);
  for (const plot of all(".js-plotly-plot"))
    if (plot._fullLayout.width > plot.clientWidth + 1) faults.push("a wide figure");
  for (const axis of all(".xaxislayer-above")) {
    const labels = [...axis.querySelectorAll(".xtick text, .x2tick text, .x3tick text")].map(box)
      .sort((a, b) => a.left - b.left);
    if (labels.slice(1).some((label, i) => labels[i].right - label.left > 1))
      faults.push("labels meet");
  }
  const parts = [".logo", ".rail", ".quiet > *", ".words", ".again", ".line > *", "> .picture"]
    .flatMap((part) => all(`.stage ${part}`)).concat(all(".st-key-page_body .st-key-content"))
    .filter((node) => box(node).width && box(node).height);
  for (const [i, one] of parts.entries())
    for (const other of parts.slice(i + 1))
      if (meet(box(one), box(other))) faults.push(`${one.className} over ${other.className}`);
  return faults;
}""".replace("HEADER", HEADER)
# The rules that depend on the scheme. Large letters are held to the contrast of small ones: what
# passes in Present passes without it.
OF_COLOUR = {
    "runOnly": ["color-contrast", "link-in-text-block"],
    "checks": {"color-contrast": {"options": {"contrastRatio": {"large": {"expected": 4.5}}}}},
}
NARROW, WIDE, WIDEST = (390, 844), (1280, 720), (1920, 1080)  # pixels
HAS_SCHEME = """(scheme) => {
  const [red, green, blue] = getComputedStyle(document.querySelector(".stApp")).backgroundColor
    .match(/\\d+/g).map(Number);
  return scheme === (red + green + blue < 150 ? "dark" : "light");
}"""
# Else colours change by and by.
WITHOUT_TRANSITIONS = """() => {
  const roots = (root) => [root, ...[...root.querySelectorAll("*")]
    .flatMap((node) => (node.shadowRoot ? roots(node.shadowRoot) : []))];
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("*, *::before, *::after { transition: none !important; }");
  for (const root of roots(document))
    if (!root.adoptedStyleSheets.some((one) => one.isStill)) {
      sheet.isStill = true;
      root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
    }
}"""
# The app draws figures anew a moment after the page has taken other colours.
HAVE_INK = """(ink) => [...document.querySelectorAll(".js-plotly-plot")]
  .every((plot) => plot.layout.font.color === ink)"""


def serious(visit, options: dict | None = None) -> dict:
    """What axe-core finds of that kind, by all its rules or as `options` say: rule → where."""
    present = [[part] for part in OURS if visit.page.locator(part).count()]
    violations = visit.page.evaluate(
        "([include, options]) => axe.run({ include }, options)"
        ".then((results) => results.violations)",
        [present, {"resultTypes": ["violations"]} | (options or {})],
    )
    return {
        rule["id"]: [node["target"] for node in rule["nodes"]]
        for rule in violations
        if rule["impact"] in ("serious", "critical")
    }


def expect_to_fit(visit, title: str, *sizes: tuple[int, int]) -> None:
    for width, height in sizes:
        visit.page.set_viewport_size({"width": width, "height": height})
        faults = []
        for _ in range(100):
            if not (faults := visit.page.evaluate(FITS, PICTURES[title])):
                break
            visit.page.wait_for_timeout(100)
        assert not faults, (title, width)


def expect_scheme(visit, scheme: str) -> None:
    visit.page.emulate_media(color_scheme=scheme)
    visit.page.wait_for_function(HAS_SCHEME, arg=scheme)
    visit.page.wait_for_function(HAVE_INK, arg=INK[scheme])
    visit.settle()  # a page without figures may not have been drawn anew yet
    visit.page.evaluate(WITHOUT_TRANSITIONS)


def expect_the_plan_on_paper(visit) -> None:
    """Of the page Learn, in class: all steps of the plan, and nothing else."""
    visit.page.get_by_role("link", name="In class").click()
    visit.settle()
    assert not serious(visit)
    sheets = on_paper(visit.page)
    assert len(sheets) == 2 and sheets[0].startswith("1. A row is a set of shares")
    assert "10. Your own sentence" in sheets[1]


@pytest.mark.parametrize("half", [0, 1])
def test_every_page_in_every_size_and_scheme(visit, half):
    """One page opens in light and changes to dark, the next the other way round."""
    page, header = visit.page, visit.page.locator(HEADER)
    expect_to_fit(visit.open("?changes=cross.1.1%3Doff"), "Heads", WIDE)
    page.evaluate(AXE_SCRIPT)
    schemes = ["light", "dark"]
    for title in [*PAGES][half::2]:
        visit.go(title).expect_well()
        expect_scheme(visit, schemes[0])
        assert not serious(visit), title
        expect_to_fit(visit, title, WIDE, NARROW)
        header.get_by_role("button", name="Present", exact=True).click()
        expect_scheme(visit.idle(), schemes[1])
        expect_to_fit(visit, title, WIDEST, WIDE)
        assert not serious(visit, OF_COLOUR), f"{title}, {schemes[1]}"
        leave = header.get_by_role("button", name="Leave", exact=True)
        if title == "Heads":  # where Esc is one depth back first
            leave.click()
        page.keyboard.press("Escape")
        expect(leave).to_have_count(0)
        visit.idle()
        schemes.reverse()
        if title == "Learn":
            expect_the_plan_on_paper(visit)


# The way to the picture by Tab


TABS = 19  # presses
FOCUS = """() => {
  let node = document.activeElement;
  while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
  return node?.tagName === "CANVAS" ? "the picture" : node?.textContent;
}"""


def test_the_picture_is_few_tabs_away(visit):
    """A text is one stop; the arrows go from word to word."""
    page = visit.open("").page
    stops = []
    while "the picture" not in stops:
        page.keyboard.press("Tab")
        stops.append(page.evaluate(FOCUS))
        assert len(stops) <= TABS, stops
    for _ in range(stops[::-1].index("rouge")):  # the last of that name: the first is in the rail
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(FOCUS) == "de"
