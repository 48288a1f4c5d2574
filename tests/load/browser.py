"""The one real browser among them: what a user sees under the same load, from the key that is
pressed to what is painted."""

import random
import threading
import time

from playwright.sync_api import Error, sync_playwright

from tests.bench.bench_grid import ANSWERED, PAINTED, typing
from tests.browser.conftest import SETTLED, launch
from tests.load.student import LONGEST, PAUSE, Record

DRAWN = {PAINTED: ".st-key-head_grid", ANSWERED: "#answer"}
PATHS = {PAINTED: "attention", ANSWERED: ""}
PATIENCE = 60_000  # ms


class Browser(threading.Thread):
    """Types a new sentence every ten seconds or so, for a number of seconds. `done` is what tells
    that it is answered."""

    def __init__(self, address: str, seconds: float, done: str, chance: random.Random):
        super().__init__(name="browser")
        self.address, self.seconds, self.done, self.chance = address, seconds, done, chance
        self.record = Record()

    def run(self) -> None:
        end = time.monotonic() + self.seconds
        with sync_playwright() as playwright:
            chromium = launch(playwright)
            try:
                page = chromium.new_page(viewport={"width": 1280, "height": 900})
                page.set_default_timeout(PATIENCE)
                page.on("pageerror", lambda error: self.record.errors.append(str(error)))
                page.goto(f"{self.address}/{PATHS[self.done]}")
                page.wait_for_selector(DRAWN[self.done], state="attached")
                page.get_by_label("Source sentence", exact=True).wait_for()
                page.wait_for_selector(SETTLED)
                words = ("a", "dog", "man", "girl", "boy", "street", "water", "ball", "red", "blue")
                while time.monotonic() < end:
                    text = " ".join(self.chance.choices(words, k=LONGEST))
                    self.record.note("painted", page.evaluate(typing(self.done), text))
                    page.wait_for_selector(SETTLED)
                    page.wait_for_timeout(1000 * min(self.chance.expovariate(1 / PAUSE), 20))
            except Error as error:
                self.record.errors.append(f"the browser: {error.message.splitlines()[0]}")
            finally:
                chromium.close()
