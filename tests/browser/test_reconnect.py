"""A connection that breaks while the model runs costs nothing, nor does a server that starts anew,
nor a browser that keeps nothing and draws without WebGL."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DRAWN, HEADER, Visit

pytestmark = pytest.mark.browser
# Keeps every socket of the page, so that a test can close it as a bad network would.
SOCKETS = """
  window.sockets = [];
  const Native = window.WebSocket;
  window.WebSocket = class extends Native {
    constructor(...given) { super(...given); window.sockets.push(this); }
  };
"""
# A short run may be over before one looks.
BEGUN = """before => window.traffic.ended > before ||
  document.querySelector('[data-testid="stApp"]').dataset.testScriptState === "running"
"""
LINE = "headlightStage.stage.state.look.line"
CLOSE = """after => new Promise(done => setTimeout(() => {
  window.sockets.forEach((one) => one.close());
  done();
}, after))"""


@pytest.mark.parametrize(
    "moments", [(0, 200), pytest.param((50, 100, 300, 500), marks=pytest.mark.long)]
)
def test_what_was_typed_outlives_a_socket_closed_during_the_run(visit, moments):
    page = visit.page
    visit.prepare(SOCKETS)
    visit.open("bertviz?kind=encoder&layer=2")
    heading = page.get_by_text("Encoder self-attention · layer 2")
    for after in moments:
        text = "A dog runs on the beach . " * 60 + str(after)
        page.locator(".pencil").click()
        page.keyboard.insert_text(text)
        before = page.evaluate("performance.now()")
        page.keyboard.press("Enter")
        page.wait_for_function(BEGUN, arg=before)
        page.evaluate(CLOSE, after)
        page.wait_for_function("() => window.sockets.at(-1).readyState === WebSocket.OPEN")
        page.wait_for_timeout(1000)
        visit.settle()
        assert page.evaluate(LINE).strip() == text
        assert f"beach+.+{after}" in page.url and "layer=2" in page.url
        expect(heading).to_be_visible()


def test_back_is_the_act_before_and_forward_the_one_after(visit):
    """In one run each, and out of the app only before the first act."""
    page, asked, views = visit.page, [], []
    rerun = 11 << 3 | 2  # the tag of Streamlit's request for a run (1.67)
    hear = lambda data: asked.append(data) if data[0] == rerun else None  # noqa: E731
    page.on("websocket", lambda socket: socket.on("framesent", hear))
    visit.open("take-away?kind=encoder&layer=2")

    def seen() -> tuple:
        off = page.get_by_role("button", name="Undo: Causal mask off")
        return page.url, off.count(), page.locator(f"{HEADER} .rail").inner_text()

    def expect_after(act, step: int) -> None:
        asked.clear()
        act()
        visit.settle()
        assert seen() == views[step], step
        assert len(asked) == 1

    visit.go("BertViz")
    views.append(seen())
    for act in (
        lambda: visit.switch("Causal mask"),
        lambda: visit.choose("layer", 1),
        lambda: visit.go("Tokenizer"),
    ):
        act()
        views.append(seen())
    assert len({*views}) == 4
    expect_after(page.go_back, 2)
    expect_after(page.go_back, 1)
    expect_after(page.go_forward, 2)
    expect_after(page.reload, 2)
    expect_after(page.go_back, 1)
    expect_after(page.go_back, 0)
    expect_after(page.go_forward, 1)


@pytest.mark.long
def test_a_browser_without_webgl_and_with_blocked_storage(app, chromium):
    blocked = """
      for (const name of ["localStorage", "sessionStorage", "indexedDB", "caches"])
        Object.defineProperty(window, name, {
          get() { throw new DOMException("denied", "SecurityError"); },
        });
      HTMLCanvasElement.prototype.getContext = new Proxy(
        HTMLCanvasElement.prototype.getContext,
        { apply: (get, it, [kind, ...more]) =>
            /webgl|webgpu/.test(kind) ? null : Reflect.apply(get, it, [kind, ...more]) });
    """
    with chromium.new_context() as context:
        visit = Visit(context.new_page(), app)
        visit.page.add_init_script(blocked)
        visit.open()
        for title in ("Heads", "Inside a head", "Share"):
            visit.go(title)
            drawn = visit.page.locator(f"{DRAWN}, .stage canvas").locator("visible=true")
            drawn.first.wait_for(timeout=60_000)
        visit.type("A woman sleeps.")
        visit.expect_well()
