"""What the document says before the app has begun is what the app then shows."""

import re
from urllib.parse import quote

import pytest

from headlight.app.server.first_screen import first_screen
from headlight.app.state import catalog, lines


def words(query="", path="/"):
    found = re.search(rb"<p>(.*?) <i>", first_screen(path, query.encode()))
    return found and found[1].decode()


def test_the_default_sentence_is_the_catalog_s(models):
    first = catalog.models()[0]
    assert words() == words(f"model={first}") == catalog.examples(first)[0]


@pytest.mark.parametrize("text", ["A dog.", "\n A dog \nruns", "one\ttwo", "a < b & c"])
def test_a_typed_text_is_its_first_line(text):
    first = lines.pairs_of(text)[0][0]
    shown = first.replace("&", "&amp;").replace("<", "&lt;")
    assert words(f"source={quote(text)}") == shown


@pytest.mark.parametrize(
    "query", ["lesson=1-shares", "room=abcd", "embed=true", "model=../en-fr", "model=paper", "%ff="]
)
def test_what_the_address_does_not_tell_is_not_said(query):
    assert words(query) == (words() if query == "%ff=" else None)
    assert words(path="/learn") is None
