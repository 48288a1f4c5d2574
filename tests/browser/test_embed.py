"""In a frame of another site's page: the live page shows picture and finding, and speaks with the
page around; the app is refused by the browser unless its host was listed."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from headlight.app.live.build import page

pytestmark = pytest.mark.browser
COURSE, PAGES = "http://course.example", "http://pages.example"
SIZE = {"width": 640, "height": 480}
AROUND = """<!doctype html><html lang="en"><title>A course</title><style>body {{ margin: 0 }}
iframe {{ border: 0; width: {width}px; height: {height}px; display: block }}</style>
<iframe title="Attention" src="{src}"></iframe>
<script>
  const heard = [];
  addEventListener("message", ({{ data }}) => heard.push(data));
</script></html>"""


@pytest.fixture
def course(context, tmp_path):
    """Opens a page of a course with a frame; returns the page, and the frame."""
    live = page("copy")
    tabs = []

    def open_(src, scheme="light", size=SIZE):
        tab = context.new_page()
        tabs.append(tab)
        around = AROUND.format(src=src, **size)
        tab.route(f"{COURSE}/*", lambda route: route.fulfill(body=around, content_type="text/html"))
        tab.route(f"{PAGES}/*", lambda route: route.fulfill(body=live, content_type="text/html"))
        tab.set_viewport_size(size)
        tab.emulate_media(color_scheme=scheme)
        tab.goto(f"{COURSE}/week-3.html")
        frame = tab.frame_locator("iframe")
        expect(frame.locator("html[data-idle]")).to_be_attached()
        return tab, frame

    yield open_
    for tab in tabs:
        tab.close()


def newest(tab, **expected) -> dict:
    """What the course heard last, once it holds these fields."""
    fields = json.dumps(expected)
    tab.wait_for_function(
        f"Object.entries({fields}).every(([name, value]) => heard.at(-1)?.[name] === value)"
    )
    return tab.evaluate("heard.at(-1)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_live_page_shows_picture_and_finding_alone(course, scheme):
    tab, frame = course(f"{PAGES}/copy.html?embed=true#source=a b c", scheme)
    for hidden in ("#ask", "#present", "#panel"):
        expect(frame.locator(hidden)).to_be_hidden()
    for shown in (".message", ".stage", ".selected .cells canvas"):
        box = frame.locator(shown).first.bounding_box()
        assert box["x"] + box["width"] <= 640 and box["y"] < 480, shown
    assert frame.locator(".selected .cells").bounding_box()["y"] <= 240
    wide = frame.locator("html").evaluate("(root) => root.scrollWidth - root.clientWidth")
    assert wide == 0
    inside = next(each for each in tab.frames if each.url.startswith(PAGES))
    found = Axe().run(inside)
    assert found.violations_count == 0, found.generate_report()


def test_course_and_live_page_speak_with_each_other(course):
    tab, frame = course(f"{PAGES}/copy.html?embed=true#source=a b c")
    first = newest(tab, type="headlight", sentence="a b c", output="a b c", error="")
    frame.locator(".stage").press("ArrowLeft")
    moved = newest(tab, head=first["head"] - 1)
    assert first["finding"] != moved["finding"] and moved["kind"] == first["kind"]
    tell = "(what) => frames[0].postMessage({ type: 'headlight', ...what }, '*')"
    tab.evaluate(tell, {"sentence": "d e", "kind": "encoder", "layer": 1, "head": 2})
    told = newest(tab, sentence="d e", output="d e", kind="encoder", layer=1, head=2)
    assert "ncoder" in told["finding"]
    for odd in ({"head": 99}, {"sentence": 5}, {"kind": "x", "layer": 1, "head": 1}, {}):
        tab.evaluate(tell, odd)
    tab.evaluate("frames[0].postMessage('sentence', '*')")
    tab.evaluate(tell, {"sentence": "a " * 1200})
    tab.wait_for_function("heard.at(-1).error !== ''")
    tab.evaluate(tell, {"sentence": "a"})
    assert newest(tab, sentence="a", output="a", error="")["layer"] == 1
    link = frame.get_by_role("link", name="Open in Headlight")
    assert "embed" not in link.get_attribute("href")
    assert "source=a&kind=encoder&layer=1&head=2" in link.get_attribute("href")


def test_no_other_frame_may_speak_to_the_live_page(course):
    tab, frame = course(f"{PAGES}/copy.html#source=a b c")
    newest(tab, sentence="a b c", output="a b c")
    inside = next(each for each in tab.frames if each.url.startswith(PAGES))
    inside.evaluate("postMessage({ type: 'headlight', sentence: 'd' }, '*')")
    tab.evaluate("frames[0].postMessage({ type: 'headlight', sentence: 'e' }, '*')")
    newest(tab, sentence="e", output="e")
    assert "d" not in tab.evaluate("heard.map(({ sentence }) => sentence)")
    expect(frame.locator("#ask")).to_be_visible()
