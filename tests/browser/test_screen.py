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


def small(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    return visit


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
    leave = visit.page.locator(".st-key-leave_present >> visible=true")
    expect(leave).to_have_count(1)
    visit.page.keyboard.press("Escape")
    expect(leave).to_have_count(0)


def test_who_wrote_the_target_is_said_beside_two_chips_and_in_present(visit):
    two = "changes=cross.1.2=off;cross.1.3=off"
    for address in (f"inside?{two}", f"compare?{two}&projector=true&shows=Before"):
        small(visit).open(address)
        state = visit.page.locator(".st-key-state")
        expect(state.locator("[class*='st-key-change_'] button >> visible=true")).to_have_count(2)
        told = state.locator(".st-key-output button p >> visible=true")
        if "projector" not in address:
            expect(told).to_contain_text("Model en-fr wrote:")
        else:  # there the finding tells it, and the picker is hidden
            expect(state).to_contain_text("Cross 3.3")
            expect(state.locator(".st-key-leave_present")).to_be_in_viewport(ratio=1)
        assert state.evaluate("(row) => row.scrollWidth <= row.clientWidth")
    visit.open("inside?projector=true")
    expect(visit.page.locator(".st-key-state")).to_contain_text("Model en-fr wrote: Elle")
    visit.page.set_viewport_size({"width": 1920, "height": 1080})
    visit.open(f"inside?projector=true&{two}")  # there is room for both
    told = visit.page.locator(".st-key-state .st-key-output button p >> visible=true")
    expect(told).to_contain_text("Model en-fr wrote:")


def test_what_is_not_drawn_yet_fades_once_a_run_is_slow(visit):
    """Not before: every element would be a layer of its own to compose, in every run."""
    visit.prepare(HOLD)
    page = visit.open("compare").page
    box = page.get_by_label("Source sentence", exact=True)
    page.evaluate("window.pass = 2")
    box.fill("A dog runs.")
    box.press("Control+Enter")
    page.wait_for_selector('[data-stale="true"]', state="attached")
    assert page.evaluate(FADING) == 0
    page.wait_for_function(f"() => ({FADING})() > 10", timeout=2000)
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
    page.wait_for_function(f"() => ({FADING})() === 0", timeout=5000)
    expect(page.locator(".st-key-output")).to_contain_text("Un chien")


def test_the_line_of_chips_ends_within_the_window(visit):
    changes = "cross.1.2%3Doff%3B+encoder%3Dhide%3A3"
    small(visit).open(
        f"compare?causal=false&pad_to=20&changes={changes}&memory_padding=false&step=1"
    )
    widths = "() => [...document.querySelectorAll('.st-key-state *')].map("

    def ends():
        return visit.page.evaluate(f"{widths} node => node.getBoundingClientRect().right)")

    assert len(ends()) > 20 and max(ends()) <= 1280
    visit.page.locator(".st-key-projector label").first.click()
    visit.settle()
    leave = visit.page.locator(".st-key-leave_present button >> visible=true")
    expect(leave).to_be_in_viewport(ratio=1)
    assert max(ends()) <= 1280


def test_a_label_stands_whole_in_the_line_of_chips_or_not_at_all(visit):
    page = small(visit).page
    query = "inside?model=en-fr&source=A+man+in+an+orange+hat+is+staring+at+something.&changes="
    for changes, whole in (("", True), ("%3B+encoder.1.1%3Doff%3B+cross.3.1%3Doff", False)):
        visit.open(f"{query}all%3Dhide%3A2{changes}")
        button = page.get_by_role("button", name="Use the new translation")  # read out in any case
        expect(button).to_be_visible()
        label = button.locator("[data-testid=stMarkdownContainer]")
        cut = label.evaluate("label => label.scrollWidth > label.clientWidth")
        hidden = label.evaluate("label => getComputedStyle(label).clipPath != 'none'")
        assert hidden != whole and not (whole and cut)
        assert (button.bounding_box()["width"] > 100) == whole


@pytest.mark.parametrize("path", ["compare?projector=true", "inside"])
def test_what_is_chosen_fits_its_box(visit, path):
    small(visit).open(path)
    cut = visit.page.evaluate(
        """() => [...document.querySelectorAll(".react-aria-ComboBox input")]
          .filter((box) => box.clientWidth && box.scrollWidth > box.clientWidth)
          .map((box) => box.value)"""
    )
    assert not cut
