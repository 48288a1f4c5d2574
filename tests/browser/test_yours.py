"""The page Check › Yours in a browser: a save is seen at once, and nothing stays behind."""

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
    right = "q.shape[-1] ** 0.5"
    for divisor in ("1", right, "8", right, "q.shape[-1]", right):
        sentence = "scores: right." if divisor == right else "scores: not yet."
        seconds.append(save(page, file, PROGRAM.format(divisor), sentence))
        expect(page.locator(".st-key-yours_matrices canvas").first).to_be_visible()
    assert statistics.median(seconds) < SLOWEST and max(seconds) < SLOWEST_BUSY, seconds
    expect(page.locator(".st-key-yours")).to_contain_text("In en-fr.")
