"""What a lecturer does in Present, projected at 1280 × 720: with B for the bar and P for the panel,
a page is at most two clicks away, and what is done on it takes at most two more. Nothing is
scrolled, and what comes of it is in view.

Positions and the comparison with PyTorch are in test_lab.py, test_app.py and, in Present, in
test_walk.py.
"""

import re

import pytest
from playwright.sync_api import expect

from headlight.app.state import pages

pytestmark = pytest.mark.long
MOST_CLICKS = 2
NOT_OFFERED = 'localStorage.setItem("headlight lesson offered", "yes")'  # a lesson, to who teaches
SCROLLED = """[document.documentElement, ...document.querySelectorAll(".stMain, .st-key-panel")]
  .reduce((sum, node) => sum + node.scrollTop, 0)"""
SEES_ALL = "grid.part('{}').cells.every((byte) => byte > 0)"


class Lecture:
    """Counts clicks; each must hit, where one sees it, what it is meant for."""

    def __init__(self, visit):
        visit.page.set_viewport_size({"width": 1280, "height": 720})
        visit.prepare(NOT_OFFERED)
        self.visit, self.page, self.clicks = visit.open("attention?projector=true"), visit.page, 0

    def go(self, title: str) -> "Lecture":
        """To a page, through the bar, which stays open."""
        page = next(page for page in pages.PAGES.values() if page.title == title)
        self.press("b")
        menu = self.page.locator(".st-key-menu").get_by_role("link", name=page.group)
        if page.group != pages.ATTENTION:  # it opens there
            self.click(menu)
        if page.view and pages.GROUPS[page.group][0] != page:
            self.click(self.page.locator(".st-key-views").get_by_text(page.view, exact=True))
        assert self.clicks <= MOST_CLICKS
        self.clicks = 0
        return self

    def press(self, key: str) -> "Lecture":
        self.page.keyboard.press(key)
        self.visit.settle()
        return self

    def click(self, locator, x: float = 0.5) -> "Lecture":
        """Where a share `x` of its width lies."""
        box = self.seen(locator := locator.locator("visible=true").first)
        hit = box["x"] + x * box["width"], box["y"] + box["height"] / 2
        assert locator.evaluate(
            """(node, [x, y]) => {
              const top = document.elementFromPoint(x, y);
              return node.contains(top) || top.contains(node);
            }""",
            hit,
        ), "something else lies there"
        self.page.mouse.click(*hit)
        self.clicks += 1
        self.visit.settle()
        return self

    def choose(self, key: str, option: str) -> "Lecture":
        """An option of a list, or of buttons."""
        widget = self.page.locator(f".st-key-{key}")
        if (listed := widget.get_by_role("combobox")).count():
            self.click(listed)
            return self.click(self.page.get_by_role("option", name=option, exact=True))
        return self.click(widget.get_by_text(option, exact=True))

    def seen(self, locator) -> dict:
        """Where something is that is whole in the window, and in what scrolls in it."""
        expect(locator).to_be_in_viewport(ratio=0.99)
        return locator.bounding_box()

    def sees(self, *texts: str) -> None:
        for text in texts:
            self.seen(self.page.get_by_text(re.compile(text)).locator("visible=true").first)

    def grid(self, expression: str):
        return self.page.evaluate(f"(() => {{ const {{ grid }} = window.headlight;"
                                  f" return {expression}; }})()")  # fmt: skip

    def done(self, name: str) -> None:
        """Nothing was scrolled, and no more than two clicks."""
        print(f"{name}: {self.clicks} clicks")
        self.visit.screenshot(f"lecture-{re.sub(r'[^a-z]+', '-', name.lower())}")
        assert self.page.evaluate(SCROLLED) == 0
        assert self.clicks <= MOST_CLICKS
        self.clicks = 0


@pytest.fixture
def lecture(visit):
    return Lecture(visit)


def test_the_causal_mask(lecture):
    """And the head that peeks most, which fills the picture."""
    assert not lecture.grid(SEES_ALL.format("decoder"))
    lecture.press("p").choose("causal", "Causal mask")
    lecture.sees("Causal mask off ×", "Without the causal mask, Decoder ")
    assert lecture.grid(SEES_ALL.format("decoder"))
    lecture.click(lecture.page.get_by_role("button", name="peeks most"))
    assert lecture.grid("grid.selected.part.kind") == "decoder"
    lecture.seen(lecture.page.locator(".selected canvas").first)
    lecture.done("causal mask")


def test_an_early_training_step_and_back(lecture):
    final = lecture.grid("grid.data.id")
    lecture.choose("step", "16")
    lecture.sees("Step 16 ×")
    assert lecture.grid("grid.data.id") != final
    lecture.done("an early step")
    lecture.click(lecture.page.get_by_role("button", name="Step 16 ×"))
    assert lecture.grid("grid.data.id") == final
    lecture.done("the last step")
