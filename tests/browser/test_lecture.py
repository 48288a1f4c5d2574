"""What a lecturer does, from the start page, projected at 1280 × 720: after the page has been
opened at most two clicks and no scrolling, and what comes of it is in view."""

import re

import pytest
from playwright.sync_api import expect

from headlight.app.state import pages

pytestmark = [pytest.mark.browser, pytest.mark.long]
MOST_CLICKS = 2
TOP, ROW = 41, 44  # as in app/views/heads.py
CAUSAL = "grid.part('decoder').cells.every((byte) => byte > 0)"
PADDED = "grid.data.sides.source.labels.filter((label) => label === '<pad>').length"


class Lecture:
    """Counts clicks; each must hit, where one sees it, what it is meant for."""

    def __init__(self, visit):
        visit.page.set_viewport_size({"width": 1280, "height": 720})
        self.visit, self.page, self.clicks = visit.open("?projector=true"), visit.page, 0

    def go(self, title: str) -> "Lecture":
        group = next(page.group for page in pages.PAGES.values() if page.title == title)
        self.click(self.page.locator('[data-testid="stTopNavSection"]', has_text=group))
        self.click(self.page.get_by_role("menuitem", name=title, exact=True))
        expect(self.page.get_by_role("heading", name=title, exact=True)).to_be_visible()
        self.visit.idle()
        assert self.clicks <= MOST_CLICKS
        self.clicks = 0
        return self

    def click(self, locator, x: float = 0.5) -> "Lecture":
        """Where a share `x` of its width lies."""
        box = self.seen(locator)
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
        return self.click(self.page.locator(f".st-key-{key}").get_by_text(option, exact=True).first)

    def seen(self, locator) -> dict:
        """Where something is that is whole in the window, below the bar or in it."""
        expect(locator).to_be_visible()
        box = locator.bounding_box()
        below = locator.evaluate("(node) => !node.closest('.st-key-top_bar, header')")
        bar = self.page.locator(".st-key-top_bar").bounding_box()
        popped = locator.evaluate(
            "(node) => !!node.closest('[role=listbox], [role=menu], [data-baseweb=popover]')"
        )
        top = bar["y"] + bar["height"] if below and not popped else 0
        assert box["y"] >= top - 1 and box["y"] + box["height"] <= 720.5, (box, top)
        assert box["x"] >= 0 and box["x"] + box["width"] <= 1280.5, box
        return box

    def grid(self, expression: str):
        return self.page.evaluate(f"(() => {{ const {{ grid }} = window.headlight;"
                                  f" return {expression}; }})()")  # fmt: skip

    def done(self, name: str) -> None:
        """Nothing was scrolled, and no more than two clicks."""
        print(f"{name}: {self.clicks} clicks")
        self.visit.screenshot(f"lecture-{re.sub(r'[^a-z]+', '-', name.lower())}")
        scrolled = "document.querySelector('.stMain').scrollTop + scrollY"
        assert self.page.evaluate(scrolled) == 0
        assert self.clicks <= MOST_CLICKS


@pytest.fixture
def lecture(visit):
    return Lecture(visit)


@pytest.mark.parametrize(
    ("pattern", "best"),
    [
        ("previous token", "Encoder self-attention, layer 3, head 4"),
        ("one-to-one", "Cross-attention, layer 1, head 2"),
    ],
)
def test_the_head_of_a_pattern_is_found(lecture, pattern, best):
    lecture.go("Heads")
    lecture.click(lecture.page.locator(".st-key-pattern").get_by_role("combobox"))
    lecture.click(lecture.page.get_by_role("option", name=pattern, exact=True))
    table = lecture.page.get_by_test_id("stDataFrame")
    box = table.bounding_box()
    assert box["y"] + TOP + ROW < 720  # its first row, the best head
    lecture.done(pattern)
    lecture.page.mouse.click(box["x"] + 16, box["y"] + TOP + ROW / 2)
    expect(lecture.page.get_by_role("heading", name=best, exact=True)).to_be_visible()


def test_the_causal_mask(lecture):
    assert not lecture.grid(CAUSAL)
    lecture.choose("causal", "Causal mask")
    lecture.seen(lecture.page.get_by_role("button", name="Causal mask off ×"))
    assert lecture.grid(CAUSAL)
    lecture.seen(lecture.page.locator(".section", has_text="Decoder").locator("canvas").first)
    lecture.done("causal mask")


def test_padding(lecture):
    lecture.click(lecture.page.get_by_label("Pad to length", exact=True))
    lecture.page.keyboard.press("ControlOrMeta+A")
    lecture.page.keyboard.type("24")
    lecture.page.keyboard.press("Enter")
    lecture.visit.settle()
    lecture.seen(lecture.page.get_by_role("button", name="Padding 24 ×"))
    assert lecture.grid(PADDED) > 5
    lecture.choose("src_padding", "Source padding mask")
    # Two lines of tokens leave room for the first rows of tiles alone.
    lecture.seen(lecture.page.get_by_role("heading", name="Encoder self-attention"))
    assert lecture.grid("grid.part('encoder').cells.every((byte) => byte > 0)")
    assert lecture.grid("grid.drawn[0].over.canvas.getBoundingClientRect().top") < 600
    lecture.done("padding")


def test_positions(lecture):
    lecture.go("Positional encoding")
    lecture.seen(lecture.page.locator(".st-key-table_figure"))
    lecture.choose("lab", "Distance")
    lecture.seen(lecture.page.locator(".st-key-products_figure"))
    lecture.done("positions")


def test_scaling(lecture):
    lecture.go("Inside a head")
    lecture.choose("at", "Softmax").choose("without", "scaling")
    lecture.seen(lecture.page.get_by_text(re.compile(r"Without scaling, .* moves")))
    for name in ("as_it_is", "pictures"):
        lecture.seen(lecture.page.locator(f".st-key-{name}").get_by_role("img").last)
    lecture.done("scaling")


def test_the_first_training_step_and_the_last(lecture):
    final = lecture.grid("grid.data.id")
    slider = lecture.page.locator(".st-key-step").get_by_role("slider")
    lecture.click(lecture.page.locator(".st-key-step"), 0.07)
    expect(slider).to_have_attribute("aria-valuetext", "16")
    lecture.seen(lecture.page.get_by_role("button", name="Step 16 ×"))
    early = lecture.grid("grid.data.id")
    assert early != final
    lecture.click(lecture.page.get_by_role("button", name="Step 16 ×"))
    assert lecture.grid("grid.data.id") == final
    lecture.done("training step")


def test_pytorch_agrees(lecture):
    lecture.go("PyTorch")
    lecture.seen(lecture.page.get_by_text("PASS: they agree"))
    lecture.done("PyTorch")
