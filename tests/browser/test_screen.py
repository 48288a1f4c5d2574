"""What of a page fits into a small window, and what fades while a run is slow."""

import pytest
from playwright.sync_api import expect

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


def test_what_is_not_drawn_yet_fades_once_a_run_is_slow(visit):
    """Not before: every element would be a layer of its own to compose, in every run."""
    visit.prepare(HOLD)
    page = visit.open("inside").page
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


@pytest.mark.parametrize("path", ["bertviz?projector=true", "inside"])
def test_what_is_chosen_fits_its_box(visit, path):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    visit.open(path)
    cut = visit.page.evaluate(
        """() => [...document.querySelectorAll(".react-aria-ComboBox input")]
          .filter((box) => box.clientWidth && box.scrollWidth > box.clientWidth)
          .map((box) => box.value)"""
    )
    assert not cut
