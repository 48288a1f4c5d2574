"""The pages of the documentation, opened from a folder."""

import pytest

from tests import documentation

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return documentation.built(tmp_path_factory.mktemp("documentation"))


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


def test_they_ask_no_other_host(site, refusing):
    page, asked = refusing
    files = sorted(site.rglob("*.html"))
    assert len(files) > len(documentation.pages())
    for file in files:
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
