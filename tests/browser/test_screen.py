"""What of a page fits into a small window, and what fades while a run is slow."""

import pytest
from playwright.sync_api import expect

from headlight.model import load

pytestmark = pytest.mark.browser
# After `window.pass = 2`: two messages, which say that a run begins, and later the rest of them.
HOLD = """
  const Quick = window.WebSocket;
  window.WebSocket = class extends Quick {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", (event) => {
        if (!event.isTrusted || !("pass" in window) || window.pass-- > 0) return;
        event.stopImmediatePropagation();
        const { data, origin } = event;
        setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data, origin })), 1500);
      });
    }
  };
"""
FADING = """() => [...document.querySelectorAll('[data-testid="stElementContainer"]')].filter(
  (node) => node.getAnimations().length || getComputedStyle(node).opacity < 1).length"""


def test_pytorch_fits_into_a_small_window_in_present(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    visit.open("compare?projector=true")
    last = visit.page.get_by_text("Having read")
    expect(last).to_be_in_viewport(ratio=1)
    box = visit.canvas("comparison", 2).bounding_box()
    assert box["y"] + box["height"] <= last.bounding_box()["y"]
    canvas = visit.canvas("comparison", 0)
    framed = canvas.evaluate("({ matrix: { follow, column } }) => [follow, column]")
    visit.click_cell("comparison", 0, framed)  # chooses it, which nobody had
    assert canvas.evaluate("({ matrix: { pinned } }) => pinned")
    visit.page.keyboard.press("Escape")
    visit.settle()
    assert not visit.canvas("comparison", 0).evaluate("({ matrix: { pinned } }) => pinned")
    visit.click_cell("comparison", 1, (2, 3))
    trace = load("en-fr").trace("She has never seen the red car of my sister.")
    read, key = trace.texts["tgt"].tokens, trace.texts["src"].tokens
    said = f"Having read “{read[2]}”, about to write “{read[3]}”: weight on “{key[3]}” "
    expect(visit.page.locator(".st-key-hero")).to_contain_text(said)
    visit.click_cell("comparison", 0, (2, 3))  # lets it go
    expect(visit.page.locator(".st-key-hero")).not_to_contain_text(said)
    visit.click_cell("comparison", 0, (2, 3))
    expect(visit.page.locator(".st-key-hero")).to_contain_text(said)
    visit.page.keyboard.press("Escape")  # so does this, and only then it leaves Present
    expect(visit.page.locator(".st-key-hero")).not_to_contain_text(said)
    leave = visit.page.get_by_role("button", name="Leave", exact=True)
    expect(leave).to_have_count(1)
    visit.page.keyboard.press("Escape")
    expect(leave).to_have_count(0)


def test_what_is_not_drawn_yet_fades_once_a_run_is_slow(visit):
    """Not before: every element would be a layer of its own to compose, in every run."""
    visit.prepare(HOLD)
    page = visit.open("compare").page
    page.locator(".pencil").click()
    page.evaluate("window.pass = 2")
    page.keyboard.type("A dog runs.")
    page.keyboard.press("Enter")
    page.wait_for_selector('[data-stale="true"]', state="attached")
    assert page.evaluate(FADING) == 0
    page.wait_for_function(f"() => ({FADING})() > 10", timeout=2000)
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
    page.wait_for_function(f"() => ({FADING})() === 0", timeout=5000)
    expect(page.locator(".stage .words")).to_contain_text("Un chien")


@pytest.mark.parametrize("path", ["compare?projector=true", "inside"])
def test_what_is_chosen_fits_its_box(visit, path):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    visit.open(path)
    cut = visit.page.evaluate(
        """() => [...document.querySelectorAll(".react-aria-ComboBox input")]
          .filter((box) => box.clientWidth && box.scrollWidth > box.clientWidth)
          .map((box) => box.value)"""
    )
    assert not cut
