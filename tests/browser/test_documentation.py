"""The pages of the documentation, opened from a folder."""

from html.parser import HTMLParser

import pytest

from tests import documentation
from tests.browser.conftest import on_paper

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


class Elements(HTMLParser):
    """Of a page: `kinds`, which are tag and class, and the text of a script or a style; and the
    addresses of another host that a browser may ask by itself."""

    def __init__(self, html: str):
        super().__init__()
        self.kinds, self.outside = set(), []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        self.kinds |= {(tag, name) for name in ["", *attributes.get("class", "").split()]}
        if tag != "a":  # which is asked for by a click
            attributes.pop("xmlns", None)
            self.outside += [value for value in attributes.values() if "//" in value]

    def handle_data(self, data):
        if self.cdata_elem and "{" in data:
            self.kinds.add((self.cdata_elem, data))


def test_they_ask_no_other_host(site, refusing):
    """Scripts ask by the elements that they meet: pages are opened that hold all kinds of them."""
    page, asked = refusing
    elements = {file: Elements(file.read_text("utf-8")) for file in site.rglob("*.html")}
    assert len(elements) > len(documentation.pages())
    assert {file: each.outside for file, each in elements.items() if each.outside} == {}
    opened = set()
    for file in sorted(elements, key=lambda file: (-len(elements[file].kinds), file)):
        if elements[file].kinds <= opened:
            continue
        opened |= elements[file].kinds
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


def test_the_teaching_plan_is_printed_on_two_sheets(site, refusing):
    page, _ = refusing
    page.goto((site / "teach-with-it.html").as_uri())
    first, second = on_paper(page)
    assert "1. A row is a set of shares" in first and "Exit question" in first
    assert second.startswith("The plan for 90 minutes") and "More for the teacher" in second
    assert "Ask /?step=16" in second  # the address of a link
    assert "Get started" not in first  # of the menu
