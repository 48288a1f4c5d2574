"""In a frame of another site's page: the live page shows picture and finding, and speaks with the
page around; the app is refused by the browser unless its host was listed."""

import html
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import quote, unquote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from headlight.app.live.build import page
from tests.conftest import serve

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

    def open_(src, scheme="light"):
        tab = context.new_page()
        tabs.append(tab)
        around = AROUND.format(src=src, **SIZE)
        tab.route(f"{COURSE}/*", lambda route: route.fulfill(body=around, content_type="text/html"))
        tab.route(f"{PAGES}/*", lambda route: route.fulfill(body=live, content_type="text/html"))
        tab.set_viewport_size(SIZE)
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
    for hidden in (".quiet", ".pencil", "#panel"):
        expect(frame.locator(hidden)).to_be_hidden()
    for shown in (".finding", ".words", ".rail", "canvas"):
        box = frame.locator(shown).first.bounding_box()
        assert box["x"] + box["width"] <= 650 and box["y"] < 480, shown
    assert frame.locator("canvas").bounding_box()["y"] <= 240
    wide = frame.locator("html").evaluate("(root) => root.scrollWidth - root.clientWidth")
    assert wide == 0
    inside = next(each for each in tab.frames if each.url.startswith(PAGES))
    found = Axe().run(inside)
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("sandbox", ["", 'sandbox="allow-scripts"'])
def test_a_page_without_an_address_is_as_in_a_tab(context, tmp_path, sandbox):
    """In srcdoc, as notebooks and course systems write it; a sandbox has no storage, either."""
    live, errors = page("copy"), []
    around = tmp_path / "week.html"
    around.write_text(f'<iframe {sandbox} srcdoc="{html.escape(live)}"></iframe>', "utf-8")
    tab = context.new_page()
    tab.on("pageerror", lambda error: errors.append(error))
    tab.goto(around.as_uri())
    frame = tab.frame_locator("iframe")
    expect(frame.locator("html[data-idle]")).to_be_attached()
    frame.get_by_role("button", name="Type another sentence").click()
    frame.get_by_role("textbox", name="Sentence").fill("c a b")
    frame.get_by_role("textbox", name="Sentence").press("Enter")
    expect(frame.locator(".side:not(.written)")).to_have_text(["c a b"] * 2, use_inner_text=True)
    frame.locator("canvas").press("o")
    undo = frame.get_by_role("button", name=re.compile("^Undo: .* off$"))
    expect(undo).to_be_visible()
    frame.locator("canvas").press("Enter")
    expect(frame.locator(".finding")).to_contain_text("q · k is")
    frame.get_by_role("button", name="More", exact=True).click()
    expect(frame.locator("#more")).to_be_visible()
    expect(frame.locator("#link")).to_be_hidden()
    frame.get_by_role("button", name="Close").click()
    undo.click()
    expect(undo).to_be_hidden()
    assert not errors
    tab.close()


def test_course_and_live_page_speak_with_each_other(course):
    tab, frame = course(f"{PAGES}/copy.html?embed=true#source=a b c")
    first = newest(tab, type="headlight", sentence="a b c", output="a b c", error="")
    frame.locator("canvas").press("2")
    frame.locator("canvas").press("ArrowLeft")
    moved = newest(tab, head=first["head"] - 1)
    assert first["finding"] != moved["finding"] and moved["kind"] == first["kind"]
    tell = "(what) => frames[0].postMessage({ type: 'headlight', ...what }, '*')"
    tab.evaluate(tell, {"sentence": "d e", "kind": "encoder", "layer": 1, "head": 2})
    told = newest(tab, sentence="d e", output="d e", kind="encoder", layer=1, head=2)
    assert "encoder 1.2" in told["finding"]
    for odd in ({"head": 99}, {"sentence": 5}, {"kind": "x", "layer": 1, "head": 1}, {}):
        tab.evaluate(tell, odd)
    tab.evaluate("frames[0].postMessage('sentence', '*')")
    tab.evaluate(tell, {"sentence": "a " * 1200})
    tab.wait_for_function("heard.at(-1).error !== ''")
    tab.evaluate(tell, {"sentence": "a"})
    assert newest(tab, sentence="a", output="a", error="")["layer"] == 1
    link = frame.get_by_role("link", name="Open in Headlight")
    assert "embed" not in link.get_attribute("href")
    assert "source=a&" in (to := link.get_attribute("href")) and "cell=encoder.1.2." in to


def test_no_other_frame_may_speak_to_the_live_page(course):
    tab, frame = course(f"{PAGES}/copy.html#source=a b c")
    newest(tab, sentence="a b c", output="a b c")
    inside = next(each for each in tab.frames if each.url.startswith(PAGES))
    inside.evaluate("postMessage({ type: 'headlight', sentence: 'd' }, '*')")
    tab.evaluate("frames[0].postMessage({ type: 'headlight', sentence: 'e' }, '*')")
    newest(tab, sentence="e", output="e")
    assert "d" not in tab.evaluate("heard.map(({ sentence }) => sentence)")
    expect(frame.locator(".pencil")).to_be_visible()


# The app. Chromium lets no page from elsewhere show one of this machine, so the course is on it.


@pytest.fixture(scope="module")
def other_site():
    """A port of this machine, at which /?src=… is a page with a frame."""

    class Course(BaseHTTPRequestHandler):
        def do_GET(self):
            src = html.escape(unquote(self.path.partition("?src=")[2]))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(AROUND.format(src=src, **SIZE).encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Course) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture(scope="module")
def framed(models, other_site, context):
    """Opens the app in the page of a host of this machine, of which `localhost` alone is listed."""
    with serve(models, arguments=("--embed-in", f"http://localhost:{other_site}")) as address:
        tab = context.new_page()
        tab.set_viewport_size(SIZE)

        def open_(host="localhost", scheme="light"):
            tab.emulate_media(color_scheme=scheme)
            tab.goto(f"http://{host}:{other_site}/?src={quote(f'{address}/?embed=true')}")
            return tab.frames[1]

        yield open_
        tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_app_shows_picture_and_finding_where_its_host_is_listed(framed, scheme):
    frame = framed(scheme=scheme)
    canvas = frame.locator(".stage canvas")
    expect(frame.locator(".stage .finding")).to_contain_text("attends", timeout=60_000)
    expect(frame.locator(".stage .quiet > *")).to_have_text("Open in Headlight")
    for shown in (".stage .finding", ".stage .words", ".stage canvas"):
        box = frame.locator(shown).first.bounding_box()
        assert box["x"] + box["width"] <= 640 and box["y"] <= 280, shown
    canvas.press("ArrowDown")
    frame.wait_for_url(re.compile("cell="))
    link = frame.get_by_role("link", name="Open in Headlight")
    link.focus()
    assert link.evaluate("(link) => link.href") == frame.url.replace("embed=true&", "")
    found = Axe().run(frame)
    assert found.violations_count == 0, found.generate_report()


def test_the_browser_refuses_a_site_that_is_not_listed(framed):
    assert framed("127.0.0.1").url.startswith("chrome-error://")
