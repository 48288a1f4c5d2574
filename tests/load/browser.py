"""The one real browser among them: what a user sees under the same load, from the key that is
pressed to what is painted."""

import random
import threading
import time

from playwright.sync_api import Error, sync_playwright

from tests.bench.in_browser import ANSWERED, ENTER, typing
from tests.browser.conftest import SETTLED, launch
from tests.load.student import LONGEST, PAUSE, Record

PATIENCE = 60_000  # ms


class Browser(threading.Thread):
    """Types a new sentence every ten seconds or so, for a number of seconds; into the app, or into
    an empty page."""

    def __init__(self, address: str, seconds: float, is_app: bool, chance: random.Random):
        super().__init__(name="browser")
        self.address, self.seconds, self.chance = address, seconds, chance
        self.drawn = ".st-key-stage_place" if is_app else "#answer"
        self.act = ENTER if is_app else typing(ANSWERED)
        self.record = Record()

    def run(self) -> None:
        end = time.monotonic() + self.seconds
        with sync_playwright() as playwright:
            chromium = launch(playwright)
            try:
                page = chromium.new_page(viewport={"width": 1280, "height": 900})
                page.set_default_timeout(PATIENCE)
                page.on("pageerror", lambda error: self.record.errors.append(str(error)))
                page.goto(self.address)
                page.wait_for_selector(self.drawn, state="attached")
                page.wait_for_selector(SETTLED)
                words = ("a", "dog", "man", "girl", "boy", "street", "water", "ball", "red", "blue")
                while time.monotonic() < end:
                    text = " ".join(self.chance.choices(words, k=LONGEST))
                    self.record.note("painted", page.evaluate(self.act, text))
                    page.wait_for_selector(SETTLED)
                    page.wait_for_timeout(1000 * min(self.chance.expovariate(1 / PAUSE), 20))
            except Error as error:
                self.record.errors.append(f"the browser: {error.message.splitlines()[0]}")
            finally:
                chromium.close()
