"""A question of a lesson: its answer stands nowhere on the page, a reload keeps it, and a phone
shows it above the picture. Whole lessons are taken in test_lessons.py."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from tests.browser.test_walk import serious

pytestmark = pytest.mark.browser
QUESTION = (  # the first one of the first lesson, on a sentence that it works on
    "attention?lesson=1-shares&step_of_lesson=3&model=en-de"
    "&source=A+group+of+people+listening+to+a+man+talking+outside."
)
# The row that the student's question is about: another student may be asked about another.
ROW = "() => window.headlight.grid.part('cross').veil[0].first"
# The colours of that row in the picture of the head, a cell each.
COVERED = """(first) => {
  const { grid } = window.headlight;
  const { picture, place } = grid.selected;
  const sharp = picture.width / picture.clientWidth;
  const context = picture.getContext("2d");
  const y = (place.top + (first + 0.5) * place.down) * sharp;
  const columns = place.width / place.across;
  return Array.from({ length: columns }, (_, column) =>
    [...context.getImageData((place.left + (column + 0.2) * place.across) * sharp, y, 1, 1).data]
      .join());
}"""
# A point of that row.
PLACE = """(first) => {
  const { canvas, place } = window.headlight.grid.selected;
  const { left, top } = canvas.getBoundingClientRect();
  return [left + place.left + 2.5 * place.across, top + place.top + (first + 0.5) * place.down];
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


def test_on_a_phone_the_question_stands_above_the_picture(visit):
    page = visit.page
    page.set_viewport_size({"width": 390, "height": 844})
    visit.open(QUESTION)
    page.evaluate("localStorage.clear()")
    visit.open(QUESTION)
    region, picture = (page.locator(f".st-key-{key}") for key in ("lesson_region", "head_grid"))
    choices = region.locator('[class*="st-key-choice"] button')
    expect(choices.last).to_be_in_viewport()
    while True:
        box = region.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
        assert box["y"] + box["height"] <= picture.bounding_box()["y"]
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.evaluate(AXE_SCRIPT)
        assert not serious(visit)
        if not choices.count():
            break  # it has been answered
        choices.first.click()
        visit.idle()
    page.evaluate("localStorage.clear()")


def test_the_first_page_offers_a_lesson_until_it_is_answered(visit):
    page = visit.page
    visit.open()
    page.evaluate("localStorage.clear()")
    visit.open()
    page.get_by_role("button", name="Not now").click()
    expect(page.get_by_role("button", name="Not now")).to_be_hidden()
    visit.open()
    expect(page.get_by_role("button", name="Not now")).to_be_hidden()
    page.evaluate("localStorage.clear()")
    visit.open()
    page.get_by_role("button", name="A row of attention").click()
    visit.idle()
    assert step(visit) == 1 and "lesson=1-shares" in page.url
    page.evaluate("localStorage.clear()")


def test_a_lesson_leads_from_page_to_page_with_none_of_the_settings_before(visit):
    page = visit.page
    visit.open()
    page.evaluate("localStorage.clear()")
    visit.open("attention?model=en-de&source=A+dog+runs.&causal=false&pad_to=12&least=0.1")
    visit.go("Learn")
    page.get_by_role("button", name="Query, key, value").first.click()
    paths = "/lookup", "/lookup", "/attention", "/attention", "/lookup", "/inside"
    for number, path in enumerate(paths, 1):
        page.wait_for_url(f"**{path}?**step_of_lesson={number}**" if number > 1 else f"**{path}?**")
        visit.idle()
        assert step(visit) == number
        settings = parse_qs(urlsplit(page.url).query)
        assert settings["lesson"] == ["2-query-key-value"]
        assert settings["model"] == ["induction"]
        assert not {"causal", "pad_to", "least"} & settings.keys()
        press(visit, "step_on")
    press(visit, "leave_lesson")
    settings = parse_qs(urlsplit(page.url).query)
    assert settings["pad_to"] == ["12"] and settings["causal"] == ["false"]
    page.evaluate("localStorage.clear()")


def test_a_query_that_is_dragged_answers_a_step(visit):
    """What the plane sends reaches the lesson; marks are those of tests/app/lessons."""
    page = visit.open("lookup?lesson=2-query-key-value&step_of_lesson=5").page
    expect(page.locator(".st-key-lesson_region")).to_contain_text("Ask for something else")
    query = page.get_by_label("Query rollercoaster")
    query.focus()
    for _ in range(12):
        query.press("ArrowLeft")
        query.press("ArrowUp")
    visit.settle()
    done = page.locator(".st-key-lesson_region").get_by_test_id("stAlertContentSuccess")
    expect(done).to_be_visible()
    page.evaluate("localStorage.clear()")
