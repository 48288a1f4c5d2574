"""The page Query–key–value: vectors moved by mouse, finger and keys."""

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from headlight.app.components import plane
from headlight.app.views.query_key_value import KEYS, QUERY, VALUES
from tests.model import family

pytestmark = pytest.mark.browser
RESTED = 400  # ms


class Dictionary:
    def __init__(self, page):
        self.page, self.part = page, page.locator(".st-key-look_up")
        expect(self.part.locator("table")).to_be_visible()

    def numbers(self):
        """The table, (row, number), all digits that were computed."""
        rows = self.part.locator("tbody tr").all()
        get = "cells => cells.map(cell => Number(cell.value))"
        return np.array([row.locator("data").evaluate_all(get) for row in rows])

    def handle(self, word):
        return self.part.get_by_role("slider", name=word)

    def vector(self, word):
        text = self.handle(word).get_attribute("aria-valuetext").replace("−", "-")
        return [float(number) for number in re.match(r"\((.+?), (.+?)\)", text).groups()]

    def tip(self, word):
        box = self.handle(word).locator(".grip").bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def unit(self):
        """Pixels from one whole number to the next."""
        (x, _), (other, _) = self.tip("rollercoaster"), self.tip("boring")
        return (x - other) / (self.vector("rollercoaster")[0] - self.vector("boring")[0])

    def drag(self, word, right, up):
        """Takes the tip of a word by so many whole numbers."""
        self.handle(word).scroll_into_view_if_needed()
        (x, y), unit = self.tip(word), self.unit()
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        for part in (0.3, 0.7, 1):
            self.page.mouse.move(x + part * right * unit, y - part * up * unit)
        self.page.mouse.up()

    def answer(self):
        return float(self.part.locator(".answer data").evaluate("data => data.value"))

    def expect_computed(self, scaled=True):
        """Every number shown is that of Python's own look-up."""
        query, *keys = (
            torch.tensor(self.vector(word), dtype=torch.float64)
            for word in ("rollercoaster", *KEYS)
        )
        values = torch.tensor(list(VALUES.values()), dtype=torch.float64)
        # look_up divides by √2: undone by a longer query.
        longer = query if scaled else query * 2**0.5
        scores, weights, answer = family.look_up(longer, torch.stack(keys), values)
        plain = torch.stack(keys) @ query
        columns = [plain, scores / 2**0.5, weights] if scaled else [plain, weights]
        assert np.abs(self.numbers() - torch.stack(columns, dim=1).numpy()).max() <= 1e-9
        assert abs(self.answer() - answer.item()) <= 1e-9
        return self


def show(mounted, scaled=True):
    """The dictionary, as the page shows it."""
    return mounted(plane.look_up, scaled, {"rollercoaster": QUERY} | KEYS, list(VALUES.values()))


@pytest.fixture
def dictionary(mounted):
    return Dictionary(show(mounted).page)


def test_mouse_drags_vectors_and_all_numbers_follow(dictionary):
    dictionary.drag("rollercoaster", -7, 8)
    assert dictionary.vector("rollercoaster") == pytest.approx([1, 3], abs=0.15)
    dictionary.expect_computed()
    low = dictionary.answer()
    dictionary.drag("boring", 6, -5.5)
    assert dictionary.vector("boring") == pytest.approx([2, 2.5], abs=0.15)
    assert dictionary.expect_computed().answer() != low
    dictionary.drag("fun", 100, 0)  # no further than the plane
    assert dictionary.vector("fun")[0] == 10
    dictionary.expect_computed()


def test_keys_alone_move_vectors(dictionary):
    page = dictionary.page
    for _ in range(8):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "(() => { let e = document.activeElement; while (e.shadowRoot?.activeElement)"
            " e = e.shadowRoot.activeElement; return e.getAttribute('aria-label'); })()"
        )
        if focused == "Key fun":
            break
    assert focused == "Key fun"
    for keys in ("ArrowLeft", "ArrowUp", "ArrowUp", "Shift+ArrowRight", "Shift+ArrowDown"):
        page.keyboard.press(keys)
        dictionary.expect_computed()
    assert dictionary.vector("fun") == [4.1, -1.1]
    page.clock.run_for(RESTED)
    said = dictionary.part.get_by_role("status")
    assert 0 < dictionary.numbers()[0, -1] < 0.0005
    expect(said).to_contain_text("fun <0.1%")
    for _ in range(20):
        page.keyboard.press("ArrowUp")
    assert dictionary.vector("fun") == [4.1, 10]


def test_a_finger_drags_too(dictionary):
    dictionary.handle("exciting").scroll_into_view_if_needed()
    (x, y), unit = dictionary.tip("exciting"), dictionary.unit()
    fingers = dictionary.page.context.new_cdp_session(dictionary.page)

    def touch(kind, *points):
        points = [{"x": px, "y": py} for px, py in points]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", (x, y))
    for part in (0.25, 0.5, 0.75, 1):
        touch("touchMove", (x, y - 5 * unit * part))
    touch("touchEnd")
    assert dictionary.vector("exciting") == pytest.approx([6, 4], abs=0.15)
    dictionary.expect_computed()


# In the app


def test_vectors_are_moved_in_the_app(visit):
    visit.open("lookup?model=uneven&source=the+dog")
    page, dictionary = visit.page, Dictionary(visit.page)
    requests = len(visit.requests)
    dictionary.drag("rollercoaster", -6, 4)
    moved = dictionary.vector("rollercoaster")
    assert moved != list(QUERY)
    assert len(visit.requests) == requests  # all in the browser
    visit.switch("Divide scores by √2")
    assert "scaled=false" in page.url
    assert dictionary.expect_computed(scaled=False).vector("rollercoaster") == moved
