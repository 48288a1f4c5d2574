"""The cards of What if in the browser: previews by pointer and by key, and the acts."""

import pytest
from playwright.sync_api import expect

from tests.browser.test_walk import AXE_SCRIPT, WITHOUT_TRANSITIONS, serious

pytestmark = pytest.mark.browser
NAMES = ("Hide red (H)", "Head 3.3 off (O)", "No positions (N)", "Peek ahead (K)", "Swap red (W)",
         "Blur all heads (T)")  # fmt: skip
KNOWN = "headlight.grid.strip.known.size"


@pytest.fixture
def page(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    return visit.open("attention?model=en-fr").page


def card(page, name):
    return page.get_by_role("button", name=name, exact=True)


def test_a_card_says_what_its_click_then_does(visit, page):
    strip, message = page.get_by_role("toolbar", name="What if"), page.locator(".message")
    assert [each.get_attribute("aria-label") for each in strip.get_by_role("button").all()] == [
        *NAMES
    ]
    assert page.evaluate(KNOWN) == 0  # nothing is computed before
    card(page, NAMES[2]).hover()
    expect(message).to_contain_text("It would write: “")
    expect(message).to_contain_text("Ma sœur")
    assert "source=positions" not in page.url
    preview = message.inner_text()
    for each in strip.get_by_role("button").all():
        expect(each.locator("small")).not_to_be_empty()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        visit.settle()
        page.evaluate(WITHOUT_TRANSITIONS)
        page.evaluate(AXE_SCRIPT)
        card(page, NAMES[2]).hover()
        expect(message).to_contain_text("It would write")
        assert not serious(visit), scheme
    card(page, NAMES[2]).click()
    visit.settle()
    now = page.locator(".text .now q").inner_text()
    assert preview.startswith(f"It would write: “{now}")
    named, _, moved = message.inner_text().partition(". ")
    assert named == "Source without positions" and preview.endswith(moved)
    expect(card(page, NAMES[2])).to_have_attribute("aria-pressed", "true")
    assert "changes=source%3Dpositions%3Anone" in page.url
    card(page, NAMES[2]).click()
    visit.settle()
    assert "changes=" not in page.url


def test_the_cards_are_one_stop_of_the_tab_key_and_letters_act_from_anywhere(visit, page):
    message = page.locator(".message")
    card(page, NAMES[0]).focus()
    page.keyboard.press("ArrowRight")
    expect(card(page, NAMES[1])).to_be_focused()
    expect(message).to_contain_text("The translation stays the same.")
    page.keyboard.press("Enter")
    visit.settle()
    assert "changes=cross.3.3%3Doff" in page.url
    page.keyboard.press("o")  # with the focus on a card
    visit.settle()
    assert "changes=" not in page.url
    page.evaluate("document.activeElement.blur()")
    for key, part in (("k", "causal=false"), ("w", "other=She+has+never+seen+the+black"),
                      ("t", "temperature")):  # fmt: skip
        page.keyboard.press(key)
        visit.settle()
        assert part in page.url, key
    page.keyboard.press("x")
    visit.settle()
    assert not {"causal", "other", "changes"} & {part.split("=")[0] for part in
                                                 page.url.partition("?")[2].split("&")}  # fmt: skip


def test_a_card_acts_on_the_selected_word_and_says_so_where_it_cannot(visit, page):
    page.locator(".text .target span").nth(3).click()
    visit.settle()
    swap = card(page, "Swap a word (W)")
    expect(swap).to_have_attribute("aria-disabled", "true")
    expect(swap).to_contain_text("select a source word")
    page.locator(".text .source span").nth(2).click()
    visit.settle()
    card(page, "Hide never (H)").click()
    visit.settle()
    assert "encoder%3Dhide%3A3" in page.url
