"""A lesson by clicks: from Learn over three pages to its end, a reload in the middle, and that the
answer to an open question stands nowhere on the page."""

import re

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from headlight.app.lessons.answers import Marker
from headlight.app.lessons.lesson import load_folder
from tests.app.lessons.common import loaded
from tests.browser.test_walk import serious

pytestmark = pytest.mark.browser
QUESTION = (  # the first one of the first lesson, on a sentence that it works on
    "?lesson=1-shares&step_of_lesson=3&model=en-de"
    "&source=A+girl+reads+a+book+while+two+boys+play+with+a+dog."
)
# The colours of the covered row in the picture of the head, and how many cells it has.
COVERED = """() => {
  const { grid } = window.headlight;
  const { picture, place } = grid.selected;
  const [{ first }] = grid.part("cross").veil;
  const sharp = picture.width / picture.clientWidth;
  const context = picture.getContext("2d");
  const y = (place.top + (first + 0.5) * place.down) * sharp;
  const columns = place.width / place.across;
  return Array.from({ length: columns }, (_, column) =>
    [...context.getImageData((place.left + (column + 0.2) * place.across) * sharp, y, 1, 1).data]
      .join());
}"""
# A point of that row.
PLACE = """() => {
  const { canvas, place } = window.headlight.grid.selected;
  const { left, top } = canvas.getBoundingClientRect();
  return [left + place.left + 2.5 * place.across, top + place.top + 2.5 * place.down];
}"""
# All text of the document and of the components' own trees, titles and labels included.
TEXT = """() => {
  const texts = [];
  const walk = (node) => {
    for (const child of node.querySelectorAll("*")) {
      if (["SCRIPT", "STYLE", "BUTTON"].includes(child.tagName)) continue;
      for (const name of ["title", "aria-label", "alt"]) texts.push(child.getAttribute(name) ?? "");
      for (const { nodeType, data } of child.childNodes) if (nodeType === 3) texts.push(data);
      if (child.shadowRoot) walk(child.shadowRoot);
    }
  };
  walk(document);
  return texts.join(" ");
}"""


def step(visit):
    text = visit.page.locator(".st-key-lesson_region").get_by_text(re.compile(r"step \d+ of"))
    return int(re.search(r"step (\d+) of", text.inner_text())[1])


def press(visit, key):
    visit.page.locator(f".st-key-{key} button").click()
    visit.idle()


def answer(visit):
    """Some answer, by whatever the open question offers."""
    region = visit.page.locator(".st-key-lesson_region")
    choices, number = (
        region.locator('[class*="st-key-choice"] button'),
        region.get_by_label("Your answer"),
    )
    if choices.count():
        choices.first.click()
    elif number.count():
        number.fill("3")
        number.press("Enter")
    elif visit.page.locator(".st-key-show_answer").count():
        return press(visit, "show_answer")
    return visit.idle()


def test_a_lesson_over_three_pages(visit):
    page = visit.page
    visit.open("?source=A+dog+runs.&model=en-de")
    visit.go("Learn")
    page.get_by_role("button", name="Query, key, value").click()
    visited, number = [], 1
    while True:
        expect(page.get_by_text(f"step {number} of")).to_be_visible()
        expect(page.locator(".st-key-lesson_link")).to_have_count(0)  # it has been followed
        visit.idle()
        visited.append(page.locator("h1").inner_text())
        query = page.get_by_label("Query rollercoaster")
        if "Ask for something else" in page.locator(".st-key-lesson_region").inner_text():
            query.focus()
            for _ in range(12):
                query.press("ArrowLeft")
                query.press("ArrowUp")
            expect(page.get_by_text("Done.")).to_be_visible()
            visit.idle()
        else:
            answer(visit)
        if page.locator(".st-key-finish_lesson").count():
            break
        press(visit, "step_on")
        number += 1
    assert number == 13 and set(visited) == {"Inside a head", "Attention"}
    with page.expect_download() as download:
        page.get_by_role("button", name="My answers").click()
    grade = Marker(load_folder()[0], loaded).grade(download.value.path().read_text())
    assert grade.lesson == "2-query-key-value" and grade.answered >= 7
    press(visit, "finish_lesson")
    expect(page.get_by_label("Source sentence", exact=True)).to_have_value("A dog runs.")
    assert "lesson" not in page.url
    visit.go("Learn")
    expect(page.get_by_text("section 3.2.1, 3.2.2")).to_contain_text("done")


def test_the_answer_stands_nowhere_until_it_is_given(visit):
    page = visit.page
    page.set_viewport_size({"width": 1280, "height": 720})
    visit.open(QUESTION)
    page.evaluate("localStorage.clear()")
    visit.open(QUESTION)
    pixels = page.evaluate(COVERED)
    assert len(pixels) == 14 and len(set(pixels)) == 1
    page.mouse.move(*page.evaluate(PLACE))  # the finding says what is pointed at
    text = page.evaluate(TEXT)
    assert "covered until you answer" in text
    assert not re.search(r"Mädchen attends|girl \(\d", text) and "Next token" not in text
    page.evaluate(AXE_SCRIPT)
    assert not serious(visit)
    press(visit, "show_answer")
    assert len(set(page.evaluate(COVERED.replace('grid.part("cross").veil', "[{ first: 2 }]")))) > 1
    assert "does not count" in page.evaluate(TEXT)


def test_a_reload_keeps_place_and_answer(visit):
    page = visit.page
    visit.open(QUESTION)
    page.evaluate("localStorage.clear()")
    visit.open(QUESTION)
    page.locator('[class*="st-key-choice"] button').first.click()
    visit.idle()
    said = page.locator(".st-key-lesson_region .stAlert").inner_text()
    visit.open(page.url.split("/", 3)[3])
    expect(page.locator(".st-key-lesson_region .stAlert")).to_have_text(said)
    assert step(visit) == 3
    page.set_viewport_size({"width": 390, "height": 844})
    visit.settle()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.evaluate(AXE_SCRIPT)
    assert not serious(visit)
    page.evaluate("localStorage.clear()")


def test_the_first_page_offers_a_lesson_until_it_is_answered(visit):
    page = visit.page
    visit.open()
    page.evaluate("localStorage.clear()")
    visit.open()
    page.get_by_role("button", name="Look around").click()
    expect(page.get_by_role("button", name="Look around")).to_be_hidden()
    visit.open()
    expect(page.get_by_role("button", name="Look around")).to_be_hidden()
    page.evaluate("localStorage.clear()")
    visit.open()
    page.get_by_role("button", name="A row of attention").click()
    visit.idle()
    assert step(visit) == 1 and "lesson=1-shares" in page.url
    page.evaluate("localStorage.clear()")
