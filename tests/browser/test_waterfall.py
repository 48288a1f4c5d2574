"""What adds up: keys, the room that the picture takes, and one selection."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
TEXT = "model=en-fr&source=She+has+never+seen+the+red+car+of+my+sister.&kind=cross"
ORDER = """(bars) => bars.map((bar) => [Number(bar.getAttribute("x")), bar])
  .sort(([a], [b]) => a - b).map(([, bar]) => Number(bar.getAttribute("height")))"""
SHARES = [((1280, 720), 0.4), ((1920, 1080), 0.5)]  # of the window, at least


def share_of(visit, key: str) -> float:
    """The part of the window that a picture, with what one changes in it, takes."""
    box, size = visit.page.locator(f".st-key-{key}").bounding_box(), visit.page.viewport_size
    assert box["y"] + box["height"] <= size["height"]  # nothing is scrolled
    return box["width"] * box["height"] / (size["width"] * size["height"])


def expect_room(visit, key: str) -> None:
    for (width, height), least in SHARES:
        visit.page.set_viewport_size({"width": width, "height": height})
        visit.settle()
        assert share_of(visit, key) >= least
    visit.page.set_viewport_size({"width": 390, "height": 844})
    visit.settle()
    assert visit.page.evaluate("document.querySelector('.stMain').scrollWidth <= 390")
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    visit.settle()


def finding(visit):
    return visit.page.locator(".st-key-finding")


def test_the_steps_of_a_logit_are_read_sorted_and_chosen_by_keys(visit):
    visit.page.emulate_media(reduced_motion="reduce")
    visit.open(f"attribution?{TEXT}&layer=1&head=1")
    picture, press = visit.page.locator(".st-key-terms"), visit.page.keyboard.press
    expect_room(visit, "terms")
    for _ in range(2):
        press("ArrowDown")
    expect(picture.get_by_role("status")).to_have_text(re.compile(r"^position (adds|takes) "))
    press("s")
    sizes = picture.locator(".step").evaluate_all(ORDER)
    assert len(sizes) == 39 and sizes == sorted(sizes, reverse=True)
    expect(picture.get_by_role("button", name="Largest first")).to_have_attribute(
        "aria-pressed", "true"
    )
    for _ in range(8):
        press("ArrowRight")
    expect(finding(visit)).to_contain_text("rouge gets ")
    expect(picture.get_by_role("radio", name="rouge", exact=True)).to_be_checked()
    expect(picture.locator(".answers .asked")).to_contain_text("rouge")
    # From the row's largest step up on, down to a head, which Enter selects.
    picture.locator(".plot").focus()
    tip = picture.locator(".tip")
    while not (found := re.match(r"cross (\d)\.(\d) ", tip.text_content())):
        press("ArrowDown")
    press("Enter")
    visit.expect_head("Cross-attention", *map(int, found.groups()))
    expect(picture.locator(".step.selected")).to_have_count(1)
    visit.go("Attention")  # one selection
    chosen = visit.page.evaluate("() => window.headlight.grid.look.cell ?? null")
    assert chosen and chosen["query"] == 8
