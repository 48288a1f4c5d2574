"""The line that says how far long work is, with Stop, and how it goes on."""

from types import SimpleNamespace

import pytest
import streamlit as st

from headlight.app.results import memoize, word_results
from headlight.app.state import progress
from headlight.app.state.cache import ByteBoundedCache
from headlight.app.text import notices
from headlight.model.probing import sweeps
from tests.app.common import unfold

TEXT, KEY = "A woman stops in the middle of the road.", "stop_work_0"


@pytest.fixture
def compared(page, monkeypatch):
    """The words that a prediction needs, a table of the drawer, in several passes, where all work
    is told of at once and the line stays, as it does in a browser until the work has ended."""
    results = SimpleNamespace(cache=ByteBoundedCache())
    monkeypatch.setattr(memoize, "results_cache", lambda: results.cache)
    monkeypatch.setattr(sweeps, "MAX_BATCH_TOKENS", 100)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    shown = SimpleNamespace(**{**vars(st), "empty": st.container})
    monkeypatch.setattr(progress, "st", shown)
    page.query_params.update(model="en-de", source=TEXT)
    unfold(page, "words_compared")
    assert not page.exception and not page.error
    return page, results


def lines(page) -> list[str]:
    return [bar.proto.text for bar in page.get("progress")]


def is_done(results) -> bool:
    return any("attribution_of" in name for name, *_ in results.cache.entries)


def said(page) -> str:
    return " ".join(element.value for element in page.markdown)


def test_it_says_how_far_the_work_is(compared):
    page, _ = compared
    (far,) = (line for line in lines(page) if line.startswith(word_results.REMOVALS))
    done, total = far.removeprefix(word_results.REMOVALS).strip().split(" of ")
    assert 0 < int(done) <= int(total) and page.button(key=KEY).label == "Stop"
    assert notices.STOPPED not in said(page)


def test_stop_ends_it_and_go_on_does_it(compared):
    page, results = compared
    assert is_done(results)
    results.cache = ByteBoundedCache()  # as in the midst of the work
    page.button(key=KEY).click().run()
    assert not page.exception and not page.error
    assert notices.STOPPED in said(page) and not is_done(results)
    page.run()
    assert notices.STOPPED in said(page)  # it is not begun again
    page.button(key="go_on").click().run()
    assert not page.exception and notices.STOPPED not in said(page)
    assert is_done(results)


def test_what_is_asked_for_after_stop_is_done(compared):
    page, results = compared
    results.cache = ByteBoundedCache()
    page.button(key=KEY).click().run()
    assert notices.STOPPED in said(page)
    page.text_area(key="source").set_value("A man stops in the street.").run()
    assert not page.exception and notices.STOPPED not in said(page)
    assert any(line.startswith(word_results.REMOVALS) for line in lines(page))
