"""What there is once on a page while Streamlit draws a run."""

import pytest
from playwright.sync_api import expect

from headlight.app.components.controls import html_frame, walk

pytestmark = pytest.mark.browser


def test_keys_are_heard_once_while_the_walk_is_on_the_page(mounted):
    mounted(walk, 2, 9, {}, lambda at: None)
    mounted.disturb("walk")
    mounted.page.keyboard.press("ArrowRight")
    assert mounted.sent("walk") == [("at", 3)]
    mounted.page.evaluate("mounts.walk.root.host.remove(); mounts.walk.fill(mounts.walk.root)()")
    mounted.page.keyboard.press("ArrowRight")
    assert mounted.sent("walk") == []


def test_a_frame_goes_on_hearing_how_high_its_page_is(mounted):
    said = "<script>onmessage = ({ data }) => parent.postMessage({ height: data }, '*')</script>"
    mounted(html_frame, said, "frame", "A page")
    mounted.disturb("frame")
    frame = mounted.page.locator("iframe")
    frame.content_frame.locator("script").wait_for(state="attached")
    frame.evaluate("(frame) => frame.contentWindow.postMessage(123, '*')")
    expect(frame).to_have_css("height", "123px")
