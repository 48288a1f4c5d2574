"""The plan for a class, walked in Present with a presenter's two buttons, in one tab: each step
shows what it promises."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from headlight.app.lessons.class_plan import ASK, plan

pytestmark = pytest.mark.browser
# What is seen at a slide, beside the question: slides count from 1.
SEEN = {
    2: "attends most to red (100%)",
    4: "its column adds up to about 25",
    5: "its column adds up to about 7",
    7: "my gets 71%",
    9: "my takes 99.8%",
    11: "Causal mask off",
    12: "falls from 90% to 1%",
    14: "The translation stays the same",
    15: "un sac",
    17: "Un",
    20: "The translation stays the same",
    22: "falls from 15% to 3%",
    23: "le chariot",
    25: "55% of its weight is on the previous token",
    26: "BLEU falls by 2.9",
    28: "Beams",
    30: "ladder",
    32: "rue",
    34: "the translation stays the same",
    36: "Attention says an, removal says house",
}
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
# The head in the large picture, whether any head is drawn as switched off, and whether a row or a
# column is selected.
DRAWN = """() => {
  const { look: { focus, off }, pinned } = window.headlight.grid;
  return [`kind=${focus.kind}&layer=${focus.layer + 1}&head=${focus.head + 1}`,
    Object.values(off ?? {}).some((heads) => heads.length), Boolean(pinned)];
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
        is_staged = slide.at.startswith("stage")
        if is_staged:
            finding = expect(page.locator(".st-key-stage_place .finding"))
            is_asked = finding.to_contain_text if slide.kind == ASK else finding.not_to_contain_text
            is_asked(slide.text.split("*")[0])
        else:
            question = page.locator(".st-key-class_question")
            expect(question).to_have_count(1 if slide.kind == ASK else 0)
        if is_staged:  # scores come when they are asked for
            finding.to_contain_text(SEEN.get(number, ""))
        if is_staged:  # scores come when they are asked for
            finding.to_contain_text(SEEN.get(number, ""))
        assert SEEN.get(number, "") in page.evaluate(TEXT), number
        asked = parse_qs(urlsplit(slide.at).query).keys() | {"projector", "plan"}
        place = {"cell"} if is_staged else set()
        assert parse_qs(urlsplit(page.url).query).keys() <= asked | place, number
        if "kind=" in slide.at and slide.at.startswith("?"):
            head, is_off, is_pinned = page.evaluate(DRAWN)
            assert head in slide.at, number
            assert is_off == ("off" in slide.at), number
            assert is_pinned == bool(asked & {"follow", "to"}), number
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
    assert page.evaluate("window.headlight.grid.part('cross').veil.length") == 1
    assert "attends most to" not in page.evaluate(TEXT)
    page.keyboard.press("ArrowRight")
    visit.settle()
    assert page.evaluate("window.headlight.grid.part('cross').veil.length") == 0
    assert "attends most to" in page.evaluate(TEXT)
    page.keyboard.press("ArrowLeft")
    visit.settle()
    expect(page.locator(".st-key-class_question")).to_contain_text("The next word will be rouge")
