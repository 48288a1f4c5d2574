"""The pages of the documentation, opened from a folder."""

import pytest

from tests import documentation
from tests.markup import Markup

pytestmark = pytest.mark.long


@pytest.fixture
def refusing(context):
    """A page of its own that reads files alone, and what it asked for beside them."""
    asked = []

    def refuse(route):
        if route.request.url.startswith("file:"):
            return route.continue_()
        asked.append(route.request.url)
        return route.abort()

    page = context.new_page()
    page.route("**/*", refuse)  # not of the context, which other tests use after this one
    yield page, asked
    page.close()


def kinds_of(page: Markup) -> set[tuple[str, str]]:
    """Tag and class of its elements, and the texts of scripts and styles."""
    classes = {(tag, name) for tag, at in page.tags for name in ["", *at.get("class", "").split()]}
    return classes | {(tag, text) for tag, text in page.texts if tag and "{" in text}


def outside(page: Markup) -> list[str]:
    """The addresses of another host that a browser may ask by itself, without a click."""
    attributes = (item for tag, at in page.tags if tag != "a" for item in at.items())
    return [value for name, value in attributes if name != "xmlns" and "//" in value]


def test_they_ask_no_other_host(site, refusing):
    """Scripts ask by the elements that they meet: pages are opened that hold all kinds of them."""
    page, asked = refusing
    read = {file: Markup(file.read_text("utf-8")) for file in site.rglob("*.html")}
    assert len(read) > len(documentation.pages())
    assert {file: asks for file, each in read.items() if (asks := outside(each))} == {}
    kinds = {file: kinds_of(each) for file, each in read.items()}
    opened = set()
    for file in sorted(kinds, key=lambda file: (-len(kinds[file]), file)):
        if kinds[file] <= opened:
            continue
        opened |= kinds[file]
        page.goto(file.as_uri())
        page.wait_for_selector("article h1")
    assert not asked


def test_the_search_works_from_a_folder(site, refusing):
    page, asked = refusing
    page.goto((site / "index.html").as_uri())
    page.locator(".md-search__button").click()
    search = page.locator("input:focus")
    search.press_sequentially("apostrophe")
    found = page.locator("a").filter(has_text="apostrophe")
    found.filter(has_text="Formats").wait_for()
    assert search.input_value() == "apostrophe"
    assert not asked
