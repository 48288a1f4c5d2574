"""The web site: every link of it leads somewhere, it asks nobody else, and it opens as a file as
well as from a subfolder of a server."""

import re
import time
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote, unquote, urlsplit

import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from headlight.model.checkpoint import load
from tests import site

pytestmark = pytest.mark.long
FIRST_PICTURE = 3  # seconds


@pytest.fixture(scope="module")
def public(tmp_path_factory) -> Path:
    """In a subfolder whose name has a blank and a letter beyond ASCII."""
    folder = tmp_path_factory.mktemp("web") / "für alle"
    site.write(folder)
    return folder


@pytest.fixture(scope="module")
def served(public):
    """Its address at a server, below the root."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = partial(Quiet, directory=public.parent)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{quote(public.name)}"
        server.shutdown()


@pytest.fixture(scope="module")
def at(served, public) -> dict[str, str]:
    return {"server": served, "file": public.as_uri()}


class Links(HTMLParser):
    """The addresses that a page names, and the places in it."""

    def __init__(self, text: str):
        super().__init__()
        self.links, self.places = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src", "srcset") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.places.add(value)


def test_every_link_leads_somewhere(public):
    pages = {
        file: Links(file.read_text("utf-8"))
        for file in public.rglob("*.html")
        if file.parent.name != "live"  # whose links are made by its script
    }
    broken = set()
    for file, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc or file.name == "404.html":
                continue
            aim = (file.parent / unquote(address.path)).resolve() if address.path else file
            place = unquote(address.fragment)
            is_there = aim.is_relative_to(public) and aim.is_file()
            if not is_there or (place and aim in pages and place not in pages[aim].places):
                broken.add((file.relative_to(public).as_posix(), link))
    assert not broken
    reached = {public / "index.html"}
    waiting = [*reached]
    while waiting:
        file = waiting.pop()
        for link in pages[file].links if file in pages else ():
            aim = (file.parent / unquote(urlsplit(link).path)).resolve()
            if not urlsplit(link).scheme and aim.suffix == ".html" and aim not in reached:
                reached.add(aim)
                waiting.append(aim)
    assert {file for file in public.rglob("*.html") if file.name != "404.html"} <= reached


@pytest.mark.parametrize("way", ["server", "file"])
def test_it_opens_a_live_page_soon_and_asks_nobody_else(at, context, way):
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{at[way]}/index.html")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.get_by_role("link", name="Try it now").focus()
    begun = time.perf_counter()
    page.keyboard.press("Enter")
    page.wait_for_url("**/live/en-fr.html*")
    expect(page.locator(".stage canvas").first).to_be_visible()
    assert time.perf_counter() - begun <= FIRST_PICTURE
    assert load("en-fr").card["terms"] in page.locator("#terms").inner_text()
    page.go_back()
    expect(page.locator("#loading")).to_be_hidden()
    page.get_by_role("link", name="Teach").click()
    expect(page.locator("article h1")).to_be_visible()
    page.close()
    elsewhere = [url for url in asked if not url.startswith((at[way], "blob:", "data:"))]
    assert {urlsplit(url).path for url in elsewhere} <= {"/favicon.ico"}


def test_language_models_are_told_of_pages_that_exist(public):
    for file in (public / "llms.txt", public / "docs" / "llms.txt"):
        named = re.findall(r"\]\(([^)]+)\)", file.read_text("utf-8"))
        assert (
            len(named) > 10 and [name for name in named if not (file.parent / name).is_file()] == []
        )


def test_hugging_face_reads_its_header(public):
    header, text = (public / "README.md").read_text("utf-8").split("---\n")[1:]
    header = yaml.safe_load(header)
    assert header["sdk"] == "static" and len(header["short_description"]) <= 60
    assert all(load(name).card["terms"] in text for name in site.MODELS)


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ValueError, match="holds no site"):
        site.write(tmp_path)
    assert (tmp_path / "thesis.tex").exists()
