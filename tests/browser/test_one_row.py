"""One row as bars: what is drawn, its keys, its layout, and its place in the address."""

import re

import numpy as np
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from headlight.app.components.one_row import KEY, ScoredHead, one_row
from headlight.app.state.options import STOPS
from headlight.app.theme import INKED

pytestmark = pytest.mark.browser
WIDTH = 16
WORDS = [*"abcdef"]
HEIGHTS = """() => [...document.querySelector(".st-key-one_row").shadowRoot
  .querySelectorAll(".bar")].map((bar) => +bar.getAttribute("height"))"""
MOVE = 700  # ms
# What of the window a picture takes, and where it ends.
TAKEN = """() => {
  const root = [...document.querySelectorAll(".st-key-one_row, .st-key-one_row *")]
    .map((node) => node.shadowRoot).find(Boolean);
  const box = root.querySelector(".middle").getBoundingClientRect();
  return [box.width * box.height / innerWidth / innerHeight, box.bottom - innerHeight,
    parseFloat(getComputedStyle(root.querySelector(".finding")).fontSize)];
}"""


def head(**more):
    random = np.random.default_rng(0)
    scores = random.normal(size=(4, 6)).astype(np.float32) * 8
    mask = np.tril(np.ones((4, 6), bool), k=2)
    values = random.normal(size=(6, WIDTH)).astype(np.float32)
    given = {
        "scores": scores,
        "mask": mask,
        "values": values,
        "code": ["# A.b\n" + s for s in STOPS],
    }
    return ScoredHead(WORDS, [*"ABCD"], [], 3, -1, **given | more)


class Bars:
    def __init__(self, mounted, shown):
        self.page = mounted(one_row, shown, INKED).page
        self.part = self.page.locator(f".st-key-{KEY}")
        self.page.clock.run_for(MOVE)

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
            self.page.clock.run_for(MOVE)
        return self

    def heights(self):
        return np.array(self.page.evaluate(HEIGHTS))

    def stop(self):
        return self.part.get_by_role("tab", selected=True)

    def row(self):
        return self.part.get_by_role("option", selected=True)


def test_bars_are_as_high_as_the_numbers_and_shrink_on_one_scale(mounted):
    shown = head(mask=np.ones((4, 6), bool))
    bars = Bars(mounted, shown)
    scores = shown.scores[3].astype(float)
    before = bars.heights()
    assert np.allclose(before / before.max(), np.abs(scores) / np.abs(scores).max(), atol=0.01)
    after = bars.press("ArrowRight").heights()
    tall = np.abs(scores) > 2  # others have the least height
    assert np.allclose(after[tall], before[tall] / WIDTH**0.5, atol=0.1)
    expect(bars.part.locator(".ghost")).to_have_count(int((before > 2).sum()))
    weights = np.exp(scores / WIDTH**0.5)
    weights /= weights.sum()
    for _ in range(2):
        found = bars.press("ArrowRight").heights()
        assert np.allclose(found / found.max(), weights / weights.max(), atol=0.01)
    sharp = np.exp(scores - scores.max())
    found = bars.press("d").heights()
    assert np.allclose(found / found.max(), sharp / sharp.max(), atol=0.01)
    expect(bars.part.locator(".finding")).to_contain_text(f"without √{WIDTH}")


def test_keys_alone_choose_stop_row_and_scaling(mounted):
    bars = Bars(mounted, head())
    expect(bars.stop()).to_have_text("q · k")
    bars.press("ArrowLeft")  # there is none before the first
    expect(bars.row()).to_have_text("D")
    bars.press("ArrowUp", "ArrowUp", "ArrowRight")
    expect(bars.row()).to_have_text("B")
    expect(bars.stop()).to_have_text(f"÷ √{WIDTH}")
    expect(bars.part.locator("rect.masked")).to_have_count(2)  # B may attend to a, b, c, d
    for key, title in (("f", "Formula"), ("c", "Code"), ("n", "Numbers")):
        bars.press(key)
        expect(bars.part.get_by_role("heading", name=title)).to_be_visible()
    expect(bars.part.get_by_role("row", name=re.compile("^f masked masked"))).to_be_visible()
    bars.press("Escape")
    expect(bars.part.get_by_role("heading", name="Numbers")).to_be_hidden()
    bars.page.keyboard.press("Space")
    bars.page.clock.run_for(10_000)
    expect(bars.stop()).to_have_text("mix of the values")
    expect(bars.part.get_by_role("button", name="Play")).to_be_visible()
    bars.part.get_by_role("switch").click()
    expect(bars.part.get_by_role("switch")).not_to_be_checked()
    bars.part.get_by_role("option", name="A").click()
    expect(bars.row()).to_have_text("A")


def test_weights_alone_have_one_stop_and_say_so(mounted):
    weights = np.full((4, 6), 1 / 6, np.float32)
    lacks = "No scores here."
    bars = Bars(mounted, head(scores=weights, values=None, mask=weights > 0, notes=[lacks]))
    expect(bars.stop()).to_have_text("÷ sum")
    expect(bars.part.get_by_role("tab", disabled=True)).to_have_count(len(STOPS) - 1)
    expect(bars.part).to_contain_text(lacks)
    bars.press("ArrowRight", "d", "ArrowUp", "n")
    expect(bars.row()).to_have_text("C")
    assert np.ptp(bars.heights()) == 0


def test_steps_are_in_the_address_and_take_no_run(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    visit.open("row?model=en-fr&follow=11+ma")
    part, page = visit.page.locator(f".st-key-{KEY}"), visit.page
    expect(part.locator(".finding")).to_contain_text("Their dot product is 32.3.")
    visit.idle()
    asked = page.evaluate("traffic.asked")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "d", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    expect(part.locator(".finding")).to_contain_text("takes 99.8% instead of 71%")
    visit.settle()
    assert page.evaluate("traffic.asked") == asked
    for said in ("stop=weights", "without=scaling", "follow=11+ma"):
        assert said in page.url
    for (width, height), least in (((1280, 720), 0.4), ((1920, 1080), 0.5), ((390, 844), 0.4)):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(300)
        page.evaluate(AXE_SCRIPT)
        found = page.evaluate("axe.run('.st-key-one_row').then(({ violations }) => violations)")
        assert not found, [(one["id"], one["nodes"][0]["html"]) for one in found]
        taken, below, letters = page.evaluate(TAKEN)
        assert taken >= least and below <= 0 and letters >= 20, (width, taken, below, letters)
    page.set_viewport_size({"width": 1280, "height": 720})
    page.reload()
    expect(part.locator(".finding")).to_contain_text("takes 99.8% instead of 71%")
    page.get_by_role("link", name="All steps").click()
    visit.settle()
    followed = page.locator(".st-key-follow").get_by_role("combobox")
    expect(followed).to_have_value("11 ma")
    expect(page.locator(".st-key-without")).to_contain_text("scaling")
    visit.expect_well()
