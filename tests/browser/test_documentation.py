"""The pages of the documentation, opened from a folder."""

import pytest

from tests import documentation

pytestmark = pytest.mark.browser


def test_they_ask_no_other_host(tmp_path, context):
    site, asked = documentation.built(tmp_path), []

    def refuse(route):
        if route.request.url.startswith("file:"):
            return route.continue_()
        asked.append(route.request.url)
        return route.abort()

    page = context.new_page()
    page.route("**/*", refuse)  # not of the context, which other tests use after this one
    files = sorted(site.rglob("*.html"))
    assert len(files) > len(documentation.pages())
    for file in files:
        page.goto(file.as_uri())
        page.wait_for_selector("article h1")
    page.close()
    assert not asked
