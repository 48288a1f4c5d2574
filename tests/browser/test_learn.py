"""A question of a lesson: its answer stands nowhere on the page, a reload keeps it, and a phone
shows it with the picture. Whole lessons are taken in test_lessons.py."""

import re
from itertools import pairwise

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from tests.browser.test_walk import serious

pytestmark = pytest.mark.browser
QUESTION = "?lesson=1-shares&step_of_lesson=3"  # the first one of the first lesson
# The weights of the row that it is about, as the browser got them.
ROW = """() => {
  const { state } = headlightStage.stage, part = state.part();
  const from = (state.tileOf(part) * part.rows + state.row()) * part.columns;
  return [...part.all.subarray(from, from + part.columns)];
}"""
FINDING = ".st-key-stage_place .finding"
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
    dots = ".st-key-stage_place .rail [role=img]"
    caption = ".st-key-lesson_region [data-testid=stCaptionContainer]"
    shown = visit.page.locator(f"{dots} >> visible=true").or_(visit.page.locator(caption)).first
    text = shown.get_attribute("aria-label") or shown.inner_text()
    return int(re.search(r"step (\d+) of", text)[1])


def press(visit, key):
    visit.page.locator(f".st-key-{key} button").click()
    visit.idle()


@pytest.mark.parametrize("number", [3, 5])  # with choices, and a row to paint
def test_on_a_phone_question_and_picture_are_in_view_together(visit, number):
    page = visit.page
    page.set_viewport_size({"width": 390, "height": 844})
    visit.open(QUESTION.replace("3", str(number)))
    page.evaluate("localStorage.clear()")
    visit.open(QUESTION.replace("3", str(number)))
    question, picture, foot = (
        page.locator(part)
        for part in (FINDING, ".st-key-stage_place .picture", ".st-key-lesson_region")
    )
    choices = foot.locator('[class*="st-key-choice"] button')
    while True:
        visit.settle()
        boxes = [part.bounding_box() for part in (question, picture, foot)]
        for above, below in pairwise(boxes):
            assert above["y"] + above["height"] <= below["y"] + 1
        assert boxes[0]["y"] >= 0 and boxes[1]["height"] > 150
        assert boxes[-1]["y"] + boxes[-1]["height"] <= 844
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.evaluate(AXE_SCRIPT)
        assert not serious(visit)
        if not choices.count():
            break  # it has been answered, or is painted
        choices.first.click()
    page.evaluate("localStorage.clear()")


def test_a_query_that_is_dragged_answers_a_step(visit):
    """What the plane sends reaches the lesson; marks are those of tests/app/lessons."""
    page = visit.open("lookup?lesson=2-query-key-value&step_of_lesson=5").page
    expect(page.locator(FINDING)).to_contain_text("One value is negative")
    query = page.get_by_label("Query rollercoaster")
    query.focus()
    for _ in range(12):
        query.press("ArrowLeft")
        query.press("ArrowUp")
    visit.settle()
    expect(page.locator(FINDING)).to_contain_text("Done.")
    page.evaluate("localStorage.clear()")
