"""The Look-up page: vectors moved by mouse, finger and keys, and the plane of a head."""

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from app.views._little_examples import KEYS, QUERY, VALUES
from model import load
from model.analysis import family
from model.analysis.projection import answer, principal_plane
from tests.browser.conftest import Visit

pytestmark = pytest.mark.browser
SENTENCE = "A dog runs on the beach."
LONG = "A dog and a man run on the beach near the red house while two girls play. " * 5

WORDS = "lookup?vectors=Three+words"


class Plane:
    """One of the page's pictures."""

    def __init__(self, visit, key):
        self.visit, self.page = visit, visit.page
        self.part = visit.page.locator(f".st-key-{key}")
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
    def __init__(self, visit):
        super().__init__(visit, "look_up")

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


@pytest.fixture
def dictionary(visit):
    return Dictionary(visit.open(WORDS))


def test_opens_on_the_vectors_of_the_text(dictionary):
    assert dictionary.vector("rollercoaster") == list(QUERY)
    assert [tuple(dictionary.vector(word)) for word in KEYS] == list(KEYS.values())
    dictionary.expect_computed()
    assert dictionary.numbers()[:, 0].tolist() == [55, 53, -72]
    assert dictionary.answer() == pytest.approx(9.80, abs=0.005)


def test_mouse_drags_vectors_and_all_numbers_follow(dictionary):
    requests = len(dictionary.visit.requests)
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
    assert len(dictionary.visit.requests) == requests  # all in the browser
    dictionary.visit.screenshot("lookup-dragged")


def test_every_number_is_mixed_alike_at_zero(dictionary):
    dictionary.drag("rollercoaster", -8, 5)
    assert dictionary.vector("rollercoaster") == [0, 0]
    assert dictionary.expect_computed().answer() == pytest.approx(sum(VALUES.values()) / 3)


def test_keys_alone_move_vectors(dictionary):
    page = dictionary.page
    page.get_by_role("switch", name="Divide scores").focus()
    reached = []
    for _ in range(8):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "(() => { let e = document.activeElement; while (e.shadowRoot?.activeElement)"
            " e = e.shadowRoot.activeElement; return e.getAttribute('aria-label'); })()"
        )
        reached.append(focused)
        if focused == "Key fun":
            break
    assert reached[-1] == "Key fun"
    for keys in ("ArrowLeft", "ArrowUp", "ArrowUp", "Shift+ArrowRight", "Shift+ArrowDown"):
        page.keyboard.press(keys)
        dictionary.expect_computed()
    assert dictionary.vector("fun") == [4.1, -1.1]
    said = dictionary.part.get_by_role("status")
    weight = dictionary.numbers()[0, -1]
    expect(said).to_contain_text(f"fun {100 * weight:.1f} %")
    for _ in range(20):
        page.keyboard.press("ArrowUp")
    assert dictionary.vector("fun") == [4.1, 10]


def test_a_finger_drags_too(chromium, app):
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, has_touch=True)
    visit = Visit(context.new_page(), app).open(WORDS)
    dictionary = Dictionary(visit)
    dictionary.handle("exciting").scroll_into_view_if_needed()
    (x, y), unit = dictionary.tip("exciting"), dictionary.unit()
    fingers = context.new_cdp_session(visit.page)

    def touch(kind, *points):
        points = [{"x": px, "y": py} for px, py in points]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", (x, y))
    for part in (0.25, 0.5, 0.75, 1):
        touch("touchMove", (x, y - 5 * unit * part))
    touch("touchEnd")
    assert dictionary.vector("exciting") == pytest.approx([6, 4], abs=0.15)
    dictionary.expect_computed()
    visit.expect_well()
    context.close()


def test_scaling_is_a_switch_that_leaves_vectors_where_they_are(dictionary):
    dictionary.drag("rollercoaster", -6, 4)
    dictionary.expect_computed()
    moved, sharp = dictionary.vector("rollercoaster"), dictionary.numbers()[:, -1].max()
    dictionary.visit.switch("Divide scores by √2")
    assert "scaled=false" in dictionary.page.url
    assert dictionary.vector("rollercoaster") == moved
    assert dictionary.expect_computed(scaled=False).numbers()[:, -1].max() > sharp
    dictionary.part.get_by_role("button", name="Reset").click()
    assert dictionary.vector("rollercoaster") == list(QUERY)
    dictionary.expect_computed(scaled=False)
    dictionary.visit.switch("Divide scores by √2")
    dictionary.expect_computed()


# The head


@pytest.fixture(scope="module")
def trace():
    return load("en-fr").trace(SENTENCE)


@pytest.fixture
def head(visit):
    address = f"lookup?source={SENTENCE.replace(' ', '+')}&kind=cross&layer=2&head=3&follow=3+chien"
    return Plane(visit.open(address), "head_plane")


def expect_row(head, trace, asks):
    """The table is that of a query of the head: its scores and its weights."""
    chosen = head.part.get_by_role("radio", checked=True)
    expect(chosen).to_have_text(trace.tgt.tokens[asks])
    weights = trace.attention["cross"][1, 2, asks]
    order = np.argsort(-weights, kind="stable")
    numbers = head.numbers()
    assert head.words() == [trace.src.tokens[i] for i in order]
    assert np.abs(numbers[:, 2] - weights[order]).max() <= 1e-6
    q, k = trace.query["cross"][1, 2], trace.key["cross"][1, 2]
    scores = trace.scores["cross"][1][2][asks]
    plane = principal_plane(np.concatenate([q, k]))
    found = answer(plane, q[asks], k, scores, weights)
    # Another pass than the page's: float32 scores of 10 differ in the sixth decimal.
    assert np.allclose(numbers[:, 0], scores[order], rtol=1e-6, atol=2e-6)
    assert np.allclose(numbers[:, 1], found.in_plane[order], rtol=1e-6, atol=1e-5)


def test_the_heads_own_weights_stand_beside_the_picture(head, trace):
    expect_row(head, trace, 2)
    sizes = head.part.locator("circle.key").evaluate_all("all => all.map(c => c.r.baseVal.value)")
    weights = np.sort(trace.attention["cross"][1, 2, 2])
    areas = (np.array(sizes) / sizes[-1]) ** 2  # drawn from the smallest up
    assert len(sizes) == len(weights) and (np.diff(areas) >= 0).all()
    head.visit.screenshot("lookup")


def query_of(head):
    return head.page.get_by_test_id("stSelectbox").filter(has_text="Query").locator("[value]")


def test_a_query_is_chosen_by_click_in_text_or_plane_and_is_in_the_link(head, trace):
    head.part.get_by_role("radio").nth(4).click()
    head.visit.settle()
    expect_row(head, trace, 4)
    assert "follow=5+" in head.page.url
    expect(query_of(head)).to_have_value(f"5 {trace.tgt.tokens[4]}")
    diamond = head.part.locator("path.other").nth(1)
    diamond.scroll_into_view_if_needed()
    diamond.dispatch_event("click")
    head.visit.settle()
    expect(query_of(head)).to_have_value(f"2 {trace.tgt.tokens[1]}")
    expect_row(head, trace, 1)


def test_a_query_is_chosen_by_keys(head, trace):
    head.part.get_by_role("radio", checked=True).focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        head.page.keyboard.press(key)
    head.visit.settle()
    expect_row(head, trace, 3)
    head.page.keyboard.press("Home")
    head.visit.settle()
    expect_row(head, trace, 0)
    assert "follow=1+" in head.page.url
    head.page.keyboard.press("ArrowLeft")  # there is none before the first
    head.visit.settle()
    expect_row(head, trace, 0)
    expect(head.part.get_by_role("status")).to_contain_text("attends most to")


def test_a_dot_says_its_name(head, trace):
    dot = head.part.locator("circle.key").last
    dot.scroll_into_view_if_needed()
    dot.hover(force=True)
    heaviest = trace.src.tokens[int(trace.attention["cross"][1, 2, 2].argmax())]
    expect(head.part.locator(".tip")).to_have_text(f"key {heaviest}")


def test_a_link_to_a_query_that_is_not_there_falls_back(visit):
    plane = Plane(visit.open("lookup?source=Hi&kind=encoder&follow=99+x"), "head_plane")
    assert len(plane.words()) == plane.part.get_by_role("radio").count() < 99
    assert "follow=99" not in visit.page.url


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("source", [SENTENCE, LONG, "x"])
def test_labels_hide_no_label(visit, source, scheme):
    visit.page.emulate_media(color_scheme=scheme)
    visit.open(f"lookup?source={source.replace(' ', '+')}&kind=encoder")
    plane = Plane(visit, "head_plane")
    labels = plane.labels()
    assert 1 <= len(labels) <= 48
    for i, a in enumerate(labels):
        for b in labels[:i]:
            apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
            assert apart, (a, b)
    ink = plane.part.locator(".labels text").first.evaluate("t => getComputedStyle(t).fill")
    light = sum(int(part) for part in re.findall(r"\d+", ink)[:3]) > 380
    assert light == (scheme == "dark")
    visit.screenshot(f"lookup-{scheme}-{len(source)}")
