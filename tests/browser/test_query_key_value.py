"""The page Query–key–value: vectors moved by mouse, finger and keys, and the plane of a head."""

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from headlight.app.components import plane
from headlight.app.text.axis import Axis
from headlight.app.views.query_key_value import KEYS, QUERY, VALUES
from headlight.model.analysis.projection import answer, principal_plane
from tests.model import family

pytestmark = pytest.mark.browser
RESTED = 400  # ms
SOURCE = ["A", "dog", "runs", "on", "the", "beach", ".", "</s>"]
TARGET = ["<s>", "Ein", "Hund", "rennt", "am", "Strand", "."]


class Plane:
    """One of the page's pictures."""

    def __init__(self, page, key):
        self.page, self.part = page, page.locator(f".st-key-{key}")
        expect(self.part.locator("table")).to_be_visible()

    def numbers(self):
        """The table, (row, number), all digits that were computed."""
        rows = self.part.locator("tbody tr").all()
        get = "cells => cells.map(cell => Number(cell.value))"
        return np.array([row.locator("data").evaluate_all(get) for row in rows])

    def words(self):
        return self.part.locator("tbody th").all_text_contents()

    def labels(self):
        """Where labels are written: left, top, right, bottom."""
        return self.part.locator("svg .labels text").evaluate_all(
            """labels => labels.map(label => {
                 const { x, y, width, height } = label.getBBox();
                 return [x, y + 0.2 * height, x + width, y + 0.8 * height];
               })"""
        )


class Dictionary(Plane):
    def __init__(self, page):
        super().__init__(page, "look_up")

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


# The head


class Head(Plane):
    """Random queries and keys of 8 numbers; the first key is masked for every query."""

    def __init__(self, mounted, queries=TARGET, keys=SOURCE, chosen=2):
        self.mounted, random = mounted, np.random.default_rng(0)
        self.tokens = queries, keys
        self.q, self.k = (random.normal(size=(len(some), 8)) * 2 for some in self.tokens)
        self.scores = self.q @ self.k.T / 8**0.5
        shares = np.exp(self.scores) * (np.arange(len(keys)) > 0)
        self.weights = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-9)
        self.plane = principal_plane(np.concatenate([self.q, self.k]))
        self.show(chosen)
        super().__init__(mounted.page, "head_plane")

    def show(self, chosen):
        given = self.answer_to(chosen)
        axes = tuple(Axis(f"side {i}", tokens) for i, tokens in enumerate(self.tokens))
        self.mounted(plane.head, self.plane, (self.q, self.k), axes, chosen, given, on_choose=None)

    def answer_to(self, query):
        return answer(self.plane, self.q[query], self.k, self.scores[query], self.weights[query])

    def chosen(self):
        """What the app has been told, once the keys have rested."""
        self.page.clock.run_for(RESTED)
        return self.mounted.sent("head_plane")

    def expect_row(self, asks):
        """The table is that of a query: its scores and its weights."""
        expect(self.part.get_by_role("radio", checked=True)).to_have_text(self.tokens[0][asks])
        expected = self.answer_to(asks)
        order = np.argsort(-expected.weights, kind="stable")
        assert self.words() == [self.tokens[1][i] for i in order]
        columns = expected.scores, expected.in_plane, expected.weights
        assert np.allclose(self.numbers(), np.stack(columns, axis=1)[order], atol=1e-9)


@pytest.fixture
def head(mounted):
    return Head(mounted)


def test_the_heads_own_weights_stand_beside_the_picture(head):
    head.expect_row(2)
    sizes = head.part.locator("circle.key").evaluate_all("all => all.map(c => c.r.baseVal.value)")
    areas = (np.array(sizes) / sizes[-1]) ** 2  # drawn from the smallest up
    assert len(sizes) == len(SOURCE) and (np.diff(areas) >= 0).all()
    expect(head.part.locator("circle.masked")).to_have_count(1)


def test_a_query_is_chosen_by_click_in_text_or_plane(head):
    head.part.get_by_role("radio").nth(4).click()
    assert head.chosen() == [("chosen", 4)]
    head.show(4)
    head.expect_row(4)
    diamond = head.part.locator("path.other").nth(1)
    diamond.scroll_into_view_if_needed()
    diamond.dispatch_event("click")
    assert head.chosen() == [("chosen", 1)]
    head.show(1)
    head.expect_row(1)


def test_a_query_is_chosen_by_keys(head):
    head.part.get_by_role("radio", checked=True).focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        head.page.keyboard.press(key)
    head.show(0)  # the answer to something earlier
    expect(head.part.get_by_role("radio", checked=True)).to_have_text(TARGET[3])
    assert head.chosen() == [("chosen", 3)]
    head.show(3)
    head.expect_row(3)
    head.page.keyboard.press("Home")
    head.page.keyboard.press("ArrowLeft")  # there is none before the first
    assert head.chosen() == [("chosen", 0)]
    head.show(0)
    head.expect_row(0)
    head.page.clock.run_for(RESTED)
    best = SOURCE[int(head.weights[0].argmax())]
    expect(head.part.get_by_role("status")).to_contain_text(f"<s> attends most to {best}")


def test_a_dot_says_its_name(head):
    dot = head.part.locator("circle.key").last
    dot.scroll_into_view_if_needed()
    dot.hover(force=True)
    heaviest = SOURCE[int(head.weights[2].argmax())]
    expect(head.part.locator(".tip")).to_have_text(f"key {heaviest}")


@pytest.mark.parametrize(("length", "scheme"), [(7, "light"), (86, "dark"), (1, "light")])
def test_labels_hide_no_label(mounted, length, scheme):
    mounted.page.emulate_media(color_scheme=scheme)
    tokens = (13 * SOURCE)[:length]
    head = Head(mounted, tokens, tokens, chosen=0)
    labels = head.labels()
    assert 1 <= len(labels) <= 48
    for i, a in enumerate(labels):
        for b in labels[:i]:
            apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
            assert apart, (a, b)
    ink = head.part.locator(".labels text").first.evaluate("t => getComputedStyle(t).fill")
    light = sum(int(part) for part in re.findall(r"\d+", ink)[:3]) > 380
    assert light == (scheme == "dark")
    mounted.screenshot(f"lookup-{scheme}-{length}")


# In the app


def test_vectors_are_moved_and_a_query_is_chosen_in_the_app(visit):
    """A click in the text or the plane, and a choice of the list, are one; the address has it."""
    visit.open(
        "lookup?model=uneven&source=the+dog&target=ein+Hund+sieht&kind=cross&follow=3+Hund&vectors=Query%E2%80%93key+plane"
    )
    page = visit.page
    query = page.get_by_test_id("stSelectbox").filter(has_text="Query").locator("[value]")
    head = Plane(page, "head_plane")
    tokens = head.part.get_by_role("radio").all_text_contents()
    chosen = head.part.get_by_role("radio", checked=True)
    expect(chosen).to_have_text(tokens[2])
    head.part.get_by_role("radio").nth(1).click()
    visit.settle()
    assert "follow=2+" in page.url
    expect(query).to_have_value(f"2 {tokens[1]}")
    expect(head.part.locator("caption b")).to_have_text(tokens[1])
    visit.choose("vectors", "Three words")
    requests = len(visit.requests)
    dictionary = Dictionary(page)
    dictionary.drag("rollercoaster", -6, 4)
    moved = dictionary.vector("rollercoaster")
    assert moved != list(QUERY)
    assert len(visit.requests) == requests  # all in the browser
    visit.switch("Divide scores by √2")
    assert "scaled=false" in page.url
    assert dictionary.expect_computed(scaled=False).vector("rollercoaster") == moved
    visit.open("lookup?source=Hi&kind=encoder&follow=99+x&vectors=Query%E2%80%93key+plane")
    head = Plane(page, "head_plane")
    assert len(head.words()) == head.part.get_by_role("radio").count() < 99
    assert "follow=99" not in page.url
