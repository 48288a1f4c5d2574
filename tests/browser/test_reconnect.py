"""A connection that breaks while the model runs costs nothing."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
# Keeps every socket of the page, so that a test can close it as a bad network would.
SOCKETS = """
  window.sockets = [];
  const Native = window.WebSocket;
  window.WebSocket = class extends Native {
    constructor(...given) { super(...given); window.sockets.push(this); }
  };
"""
RUNNING = '[data-testid="stApp"][data-test-script-state="running"]'
CLOSE = """after => new Promise(done => setTimeout(() => {
  window.sockets.forEach((one) => one.close());
  done();
}, after))"""


def test_what_was_typed_outlives_a_socket_closed_during_the_run(visit):
    page = visit.page
    visit.prepare(SOCKETS)
    visit.open("?kind=encoder&layer=2")
    box = page.get_by_label("Source sentence", exact=True)
    heading = page.get_by_role("heading", name="Encoder self-attention, layer 2")
    for after in (0, 50, 100, 200, 300, 500):
        text = "A dog runs on the beach . " * 60 + str(after)
        box.fill(text)
        box.press("Control+Enter")
        page.wait_for_selector(RUNNING)
        page.evaluate(CLOSE, after)
        page.wait_for_function("() => window.sockets.at(-1).readyState === WebSocket.OPEN")
        page.wait_for_timeout(1000)
        visit.settle()
        expect(page.locator(".source span").nth(5)).to_have_text("beach")
        expect(box).to_have_value(text)
        assert f"beach+.+{after}" in page.url and "layer=2" in page.url
        expect(heading).to_be_visible()


def test_going_back_brings_the_view_back(visit):
    visit.open("?kind=encoder&layer=2").go("PyTorch").choose("layer", 1)
    visit.page.go_back()
    visit.settle()
    heading = visit.page.get_by_role("heading", name="Encoder self-attention, layer 2")
    expect(heading).to_be_visible()
    assert "layer=2" in visit.page.url
