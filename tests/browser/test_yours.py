"""The page Check › Yours in a browser: a save is seen, and an error is a sentence."""

import statistics
import time

import psutil
import pytest
from playwright.sync_api import Page, expect

from headlight.app.server.checked_file import YOURS_PATH
from tests.conftest import ROOT, serve
from tests.waiting import wait_until

pytestmark = pytest.mark.browser
SLOWEST, SLOWEST_BUSY = 1.0, 3.0  # seconds from a save to its picture: the median, and any
START = 60_000  # milliseconds
PROGRAM = "def scores(q, k):\n    return q @ k.transpose(-2, -1) / {}\n"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("yours") / "mine.py"
    file.write_text(PROGRAM.format("q.shape[-1]"), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def address(file):
    with serve(ROOT, arguments=["--check", str(file)]) as address:
        yield f"{address}/{YOURS_PATH}"
    wait_until(lambda: not any(str(file) in line for line in command_lines()))


def command_lines() -> list[list[str]]:
    return [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]


@pytest.fixture
def page(chromium, address):
    with chromium.new_page() as page:
        page.goto(address)
        page.locator(".st-key-yours_matrices canvas").first.wait_for(timeout=START)
        yield page


def save(page: Page, file, text: str, sentence: str) -> float:
    """Seconds until the sentence is there."""
    began = time.monotonic()
    file.write_text(text, encoding="utf-8")
    expect(page.locator(".st-key-yours")).to_contain_text(sentence)
    return time.monotonic() - began


def test_a_save_is_seen_at_once(page, file):
    seconds = []
    for divisor, sentence in (
        ("q.shape[-1] ** 0.5", "scores: right."),
        ("1", "That is the dot product"),
        ("8", "You divided by 8"),
        ("q.shape[-1]", "You divided by d."),
        ("q.shape[-1] ** 0.5", "scores: right."),
        ("q.shape[-1] ** -0.5", "large sums should become smaller"),
    ):
        seconds.append(save(page, file, PROGRAM.format(divisor), sentence))
        expect(page.locator(".st-key-yours_matrices canvas").first).to_be_visible()
    assert statistics.median(seconds) < SLOWEST and max(seconds) < SLOWEST_BUSY, seconds
    expect(page.locator(".st-key-yours")).to_contain_text("In en-fr.")


def test_an_error_is_a_sentence_and_the_next_save_is_judged(page, file):
    save(page, file, "def scores(q, k:", "Line 1: '(' was never closed.")
    save(page, file, "import os\nos._exit(1)", "ended the program before it was judged")
    save(page, file, "while True: pass", "longer than 10 seconds")
    save(page, file, PROGRAM.format("q.shape[-1] ** 0.5"), "scores: right.")
    assert not page.locator("[data-testid=stException]").count()
