"""The lesson of one head, walked through with the keyboard."""

import numpy as np
import pytest
from playwright.sync_api import expect

from app.head_lesson import STEPS
from model import load

pytestmark = pytest.mark.browser
LINK = "inside?kind=cross&layer=3&head=2&source=A+dog+runs.&target=Ein+Hund+rennt."
SHOWN = """() => Object.fromEntries(window.headlight.matrices.map(
  (one) => [one.title, {cells: [...one.cells], shape: one.values, painted: one.canvas.width}]))"""


def shown(visit):
    found = visit.page.evaluate(SHOWN)
    assert all(one["painted"] > 50 for one in found.values())
    return {title: np.reshape(one["cells"], one["shape"]) for title, one in found.items()}


def test_every_step_is_drawn_by_keyboard_alone(visit):
    visit.open(LINK)
    trace = load("en-de").trace("A dog runs.", "Ein Hund rennt.")
    seen = {}
    for number, name in enumerate(STEPS, start=1):
        expect(visit.page.get_by_role("heading", name=f"{number}. {name}")).to_be_visible()
        visit.settle()
        seen |= shown(visit)
        visit.page.keyboard.press("ArrowRight")
    visit.expect_well()
    assert np.allclose(seen["weights"], trace.attention["cross"][2, 1], atol=1e-6)
    assert np.allclose(seen["q"], trace.query["cross"][2, 1], atol=1e-6)
    assert np.allclose(
        seen["what the layer gives on"], trace.sublayers["decoder.layers.2"], atol=1e-5
    )
    expect(visit.page.get_by_role("heading", name=f"11. {STEPS[-1]}")).to_be_visible()
    visit.page.keyboard.press("ArrowLeft")
    expect(visit.page.get_by_role("heading", name=f"10. {STEPS[-2]}")).to_be_visible()


def test_a_step_can_be_linked_to(visit):
    visit.open(LINK + "&at=Softmax&without=scaling")
    expect(visit.page.get_by_role("heading", name="6. Softmax")).to_be_visible()
    expect(visit.page.get_by_text("Left out: scaling.")).to_be_visible()
    address = visit.page.url
    visit.page.keyboard.press("ArrowRight")
    expect(visit.page.get_by_role("heading", name="7. Values")).to_be_visible()
    assert "at=Values" in visit.page.url and address != visit.page.url


def test_what_is_under_the_pointer_is_said(visit):
    visit.open(LINK + "&at=Softmax")
    visit.settle()
    canvas = visit.page.get_by_role("img", name="weights: 5 rows")
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] - 20, "y": box["height"] - 15})
    weight = load("en-de").trace("A dog runs.", "Ein Hund rennt.").attention["cross"][2, 1, -1, -1]
    said = visit.page.get_by_text("weights: “.”, “</s>”")
    expect(said).to_be_visible()
    assert float(said.inner_text().rpartition(": ")[2]) == pytest.approx(float(weight), abs=1e-6)
