"""The web site: every link of it leads somewhere, it asks nobody else, and it opens as a file as
well as from a subfolder of a server."""

import re
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote, urlsplit

import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from headlight.model.checkpoint import load
from tests import site
from tests.markup import Markup, broken_links, target_of

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


def test_every_link_leads_somewhere(public):
    """And to every page."""
    files = {file for file in public.resolve().rglob("*.html") if file.name != "404.html"}
    pages = {file for file in files if file.parent.name != "live"}  # whose script makes its links
    assert broken_links(public, pages) == []
    reached, waiting = set(), [public.resolve() / "index.html"]
    while waiting:
        reached.add(file := waiting.pop())
        links = Markup(file.read_text("utf-8")).links if file in pages else ()
        waiting += {target_of(link, file) for link in links} & files - reached
    assert files == reached


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
    expect(page.locator("html[data-idle]")).to_be_attached()
    assert time.perf_counter() - begun <= FIRST_PICTURE
    page.get_by_role("button", name="More", exact=True).click()
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
