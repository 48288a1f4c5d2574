"""Every page once: nothing serious for axe-core, in light and dark, and nothing wider than the
page, on a laptop, on a wide screen and on a phone; and those that a projector shows otherwise."""

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from headlight.app.state import pages
from headlight.app.theme import INK
from tests.browser.conftest import PAGES, on_paper
from tests.browser.controls import controls

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]  # each test visits every page
PICTURES = {page.title: page.picture for page in pages.MENU}
OURS = [  # Streamlit answers for its own widgets
    *(picture for picture in PICTURES.values() if picture.startswith(".st-key-")),
    ".st-key-copy_link",
    ".st-key-lesson_region",
    ".hl-tokens",
    ".hl-merges",
    "[class*=_figure]",
    ".stMarkdown",
    ".stHeading",
    "[data-testid=stCaptionContainer]",
]
# A figure takes its new width a moment after the page, and its labels then find their places.
FITS = """(picture) => {
  const below = (root) => [root, ...[...root.querySelectorAll("*")]
    .flatMap((node) => node.shadowRoot ? below(node.shadowRoot) : [])];
  const roots = below(document);
  const all = (selector) => roots.flatMap((root) => [...root.querySelectorAll(selector)]);
  const [page, frames] = [all(".stMain, .stMainBlockContainer"), all(".frame")];
  const drawn = document.querySelector(picture)?.getBoundingClientRect();
  const isThere = drawn?.height > 20 || picture === STAGE; // which stands outside of the flow
  return page.length === 2 && isThere &&
    [...page, ...frames].every((box) => box.scrollWidth <= box.clientWidth + 1) &&
    all(".js-plotly-plot").every((plot) => plot._fullLayout.width <= plot.clientWidth + 1);
}""".replace("STAGE", f"'{PICTURES['Heads']}'")
# The rules that depend on the scheme. Large letters are held to the contrast of small ones: what
# passes in Present passes without it.
OF_COLOUR = {
    "runOnly": ["color-contrast", "link-in-text-block"],
    "checks": {"color-contrast": {"options": {"contrastRatio": {"large": {"expected": 4.5}}}}},
}
NARROW = 390  # pixels
CONTROLS, FILES = 20, 27  # in the first view; the page of files is nothing but buttons
LOW = 720  # pixels, of the window
HEIGHT = 900  # pixels of a page while nothing is unfolded
# Of labels that stand in one line, how far one reaches into the next, at most. Turned ones stand
# side by side by their boxes too.
MEETING = """() => Math.max(0, ...[...document.querySelectorAll(".xaxislayer-above")].map(
  (axis) => {
    const boxes = [...axis.querySelectorAll(".xtick text, .x2tick text, .x3tick text")]
      .map((text) => text.getBoundingClientRect()).sort((a, b) => a.left - b.left);
    return Math.max(0, ...boxes.slice(1).map((box, i) => boxes[i].right - box.left));
  }))"""
HAS_SCHEME = """(scheme) => {
  const [red, green, blue] = getComputedStyle(document.querySelector(".stApp")).backgroundColor
    .match(/\\d+/g).map(Number);
  return scheme === (red + green + blue < 150 ? "dark" : "light");
}"""
# Else colours change by and by.
WITHOUT_TRANSITIONS = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("*, *::before, *::after { transition: none !important; }");
  document.adoptedStyleSheets = [sheet];
}"""
# The app draws figures anew a moment after the page has taken other colours.
HAVE_INK = """(ink) => [...document.querySelectorAll(".js-plotly-plot")]
  .every((plot) => plot.layout.font.color === ink)"""
NAMED = "Inside a head", "PyTorch"  # in Present their picker is hidden
WHOLE = "PyTorch", "Positional encoding"  # with the bar too, in Present
PROJECTED = [title for title in PAGES if title in (*NAMED, *WHOLE)]
LOWEST = """() => Math.max(...[document, ...[...document.querySelectorAll("*")]
  .flatMap((node) => node.shadowRoot ?? [])].flatMap((root) =>
    [...root.querySelectorAll(".bar, .frame canvas, .st-key-hero p, .st-key-switch_head button")])
  .map((node) => node.getBoundingClientRect().bottom))"""


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


def expect_to_fit(visit, title: str, *widths: int) -> None:
    for width in widths:
        visit.page.set_viewport_size({"width": width, "height": LOW})
        visit.page.wait_for_function(FITS, arg=PICTURES[title], timeout=30_000)


def expect_first_view(visit, title: str) -> None:
    """The budget of a page's first view: what there is to choose from, all of it in sight."""
    visit.idle()
    found = controls(visit.page)
    assert len(found) <= (FILES if title == "Share" else CONTROLS), found
    room = visit.page.evaluate(
        """() => {
          const row = document.querySelector(".st-key-controls");
          const beyond = [...document.querySelectorAll(".stMarkdown table")].map((table) =>
            table.getBoundingClientRect().right - table.closest(".stMarkdown")
              .getBoundingClientRect().right);
          const covering = [...document.querySelectorAll(".js-plotly-plot")].map((plot) =>
            plot.querySelector(".modebar").getBoundingClientRect().bottom
              - plot.getBoundingClientRect().top);
          const bottoms = [...document.querySelectorAll(".st-key-panel .stElementContainer")]
            .map((node) => node.getBoundingClientRect().bottom);
          const crowded = [...document.querySelectorAll(".st-key-panel .stDataFrame")]
            .map((table) => table.getBoundingClientRect().top)
            .map((top) => 34 - top + Math.max(...bottoms.filter((bottom) => bottom <= top)));
          return { hidden: row ? row.scrollWidth - row.clientWidth : 0,
            beyond: Math.max(0, ...beyond),
            covering: Math.max(0, ...covering),  // of a toolbar, over its figure
            crowded: Math.max(0, ...crowded),  // the toolbar above a table, by other words
            height: document.querySelector(".stMain").scrollHeight };
        }"""
    )
    assert max(room["hidden"], room["beyond"]) <= 1 and room["height"] <= HEIGHT, (title, room)
    assert room["crowded"] <= 1, (title, room)
    assert room["covering"] <= 4, title  # less than the margin above its labels


def expect_scheme(visit, scheme: str) -> None:
    visit.page.wait_for_function(HAS_SCHEME, arg=scheme)
    visit.page.wait_for_function(HAVE_INK, arg=INK[scheme])
    visit.idle()


def expect_the_plan_on_paper(visit) -> None:
    """Of the page Learn, in class: all steps of the plan, and nothing else."""
    visit.page.get_by_text("In class", exact=True).click()
    visit.settle()
    assert not serious(visit)
    sheets = on_paper(visit.page)
    assert len(sheets) == 2 and sheets[0].startswith("1. A row is a set of shares")
    assert "10. Your own sentence" in sheets[1]


def begin(visit, scheme: str, path: str = "") -> None:
    """Open the first page, from which one walks to the others by clicks."""
    visit.page.emulate_media(color_scheme=scheme)
    visit.page.set_viewport_size({"width": 1280, "height": LOW})
    visit.open(path)
    visit.page.evaluate(WITHOUT_TRANSITIONS)
    visit.page.evaluate(AXE_SCRIPT)


@pytest.mark.parametrize("half", [0, 1])
def test_nothing_serious_and_nothing_wider_than_the_page(visit, half):
    """Pages are opened in light and dark by turns, and follow while they are open."""
    begin(visit, "light")
    schemes = ["light", "dark"]
    for title in [*PAGES][half::2]:
        visit.go(title)
        visit.expect_well()
        expect_scheme(visit, schemes[0])
        assert not serious(visit), title
        expect_to_fit(visit, title, 1280, 1920, NARROW)
        assert visit.page.evaluate(MEETING) <= 1, title
        expect_to_fit(visit, title, 1280)
        expect_first_view(visit, title)
        schemes.reverse()
        visit.page.emulate_media(color_scheme=schemes[0])
        expect_scheme(visit, schemes[0])
        visit.settle()  # a page without figures may not have been drawn anew yet
        assert not serious(visit, OF_COLOUR), f"{title}, {schemes[0]}"
        if title == "Learn":
            expect_the_plan_on_paper(visit)


# Of a chip's letters on its colour (WCAG 2.2), which axe does not measure here.
CONTRAST = """() => {
  const chip = document.querySelector('.st-key-state button[kind=primary]');
  const light = (colour) => {
    const [red, green, blue] = colour.match(/[\\d.]+/g).map((share) => share / 255)
      .map((share) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
  };
  const [low, high] = [getComputedStyle(chip.querySelector("p")).color,
    getComputedStyle(chip).backgroundColor].map(light).sort((a, b) => a - b);
  return high / low;
}"""


def test_dark_and_for_a_projector(visit):
    begin(visit, "dark", "inside?projector=true&src_padding=false")
    assert visit.page.evaluate(CONTRAST) >= 4.5
    for title in PROJECTED:
        visit.go(title)
        visit.expect_well()
        assert "projector=true" in visit.page.url, title
        expect_scheme(visit, "dark")
        assert not serious(visit, OF_COLOUR), title
        if title in NAMED:
            expect(visit.page.locator(".st-key-state")).to_contain_text("Cross 3.3")
        expect_to_fit(visit, title, 1920, 1280)
        if title in WHOLE:
            visit.idle()
            assert visit.page.evaluate(LOWEST) <= LOW, title
            rows = visit.page.locator(".st-key-controls")
            cut = "(rows) => rows.some((row) => row.scrollWidth > row.clientWidth + 1)"
            assert not rows.evaluate_all(cut), title


# The way to the picture by Tab


TABS = 19  # presses
IS_CANVAS = "node?.tagName === 'CANVAS'"
FOCUS = """() => {
  let node = document.activeElement;
  while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
  return NODE;
}"""
FOCUSED, IN_PICTURE = (FOCUS.replace("NODE", what) for what in ("node?.textContent", IS_CANVAS))


def test_the_picture_is_few_tabs_away(visit):
    """A text is one stop; the arrows go from word to word."""
    page = visit.open("").page
    stops = []
    while not page.evaluate(IN_PICTURE):
        page.keyboard.press("Tab")
        stops.append(page.evaluate(FOCUSED))
        assert len(stops) <= TABS, stops
    for _ in range(stops[::-1].index("rouge")):  # the last of that name: the first is in the rail
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(FOCUSED) == "de"
