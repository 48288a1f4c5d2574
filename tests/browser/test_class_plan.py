"""The plan for a class, walked in Present with a presenter's two buttons, in one tab: each step
shows what it promises."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from headlight.app.lessons.class_plan import ASK, plan

pytestmark = pytest.mark.browser
# What is seen at a slide of a page that stands by itself; slides count from 1.
SEEN = {
    28: "5 beams",
    30: "ladder",
}
FINDING = ".st-key-stage_place .finding"
# All text that is drawn, in its order, also of the components' own trees.
TEXT = """() => {
  const walk = (node) => {
    if (node.nodeType === 3) return node.data;
    if (["STYLE", "SCRIPT"].includes(node.tagName)) return "";
    if (node.tagName && !node.getClientRects().length
      && getComputedStyle(node).display !== "contents") return "";
    return [...(node.shadowRoot ?? node).childNodes].map(walk).join("");
  };
  return walk(document.body).replace(/\\s+/g, " ");
}"""


@pytest.mark.long
def test_the_plan_is_walked_with_two_buttons_in_one_tab(visit):
    page = visit.page
    page.set_viewport_size({"width": 1280, "height": 720})
    visit.open("learn?picture=In+class")
    page.locator(".st-key-class_steps a.ask").first.click()
    visit.settle()
    remote, slides = page.locator(".st-key-remote nav"), plan().slides
    for number, slide in enumerate(slides, 1):
        expect(remote).to_contain_text(f"Step {slide.step} of {len(plan().steps)}")
        expect(remote).to_be_in_viewport(ratio=0.99)
        is_staged = slide.at.startswith("?")
        if is_staged:  # the finding is what the plan says
            expect(page.locator(FINDING)).to_have_text(slide.text.replace("*", ""))
        else:
            question = page.locator(".st-key-class_question")
            expect(question).to_have_count(1 if slide.kind == ASK else 0)
        assert SEEN.get(number, "") in page.evaluate(TEXT), number
        asked = parse_qs(urlsplit(slide.at).query).keys() | {"projector", "plan"}
        place = {"cell", "depth"} if is_staged else set()
        assert parse_qs(urlsplit(page.url).query).keys() <= asked | place, number
        if head := re.search(r"kind=(\w+)&layer=(\d)&head=(\d)", slide.at):
            kind, layer, number_of_head = head.groups()
            rail = page.locator(".st-key-stage_place .rail")
            expect(rail).to_contain_text(f"{kind} {layer}.{number_of_head}")
        assert page.evaluate("document.querySelector('.stMain').scrollTop") == 0
        if number < len(slides):
            page.keyboard.press("PageDown")
            visit.settle()
    assert not visit.errors
    page.keyboard.press("PageUp")
    visit.settle()
    expect(remote).to_contain_text("Step 9 of 10")
    page.keyboard.press("Escape")
    visit.settle()
    expect(page.locator(".st-key-class_steps")).to_contain_text("Is attention an explanation?")
    assert "projector" not in page.url


def test_a_covered_row_is_asked_and_shown_and_the_walk_starts_clean(visit):
    page = visit.open("?model=en-fr&causal=false").page
    visit.go("Learn")
    page.get_by_text("In class", exact=True).click()
    visit.settle()
    page.locator(".st-key-class_steps a.ask").first.click()
    visit.settle()
    assert "causal" not in page.url  # the plan decides all settings
    expect(page.locator(FINDING)).to_contain_text("The next word will be rouge")
    red = page.locator(".st-key-stage_place .w", has_text="red")
    expect(red).to_have_attribute("aria-label", "red")
    page.keyboard.press("ArrowRight")
    visit.settle()
    expect(page.locator(FINDING)).to_contain_text("with nearly 100%")
    expect(red).to_have_attribute("aria-label", "red, weight 100%")
    page.keyboard.press("ArrowLeft")
    visit.settle()
    expect(page.locator(FINDING)).to_contain_text("The next word will be rouge")
    expect(red).to_have_attribute("aria-label", "red")
