"""From 2017 to Llama: one figure that changes part by part."""

import pytest
from playwright.sync_api import expect

from headlight.model.analysis.lineage import LINE

pytestmark = pytest.mark.browser
LINEAGE = "lineage?source=Two+dogs+run."


def test_one_change_after_another(visit):
    """By the button, the keys, a stop and the address; blocks that stay are the same elements."""
    page = visit.open(LINEAGE).page
    line, figure = page.locator(".st-key-swap_line"), page.locator(".st-key-model_map")
    stops, current = line.locator(".stop"), line.locator("[aria-current=step]")
    changed = figure.locator(".changed")
    expect(stops).to_have_count(1 + len(LINE))
    expect(current).to_contain_text("the paper")
    expect(figure.locator('[data-part^="encoder"]').first).to_be_visible()
    line.get_by_role("button", name="Next change").click()
    expect(page.locator(".stage .finding")).to_contain_text("one stack of decoder layers")
    encoder = figure.locator('[data-part^="encoder"]')
    expect(encoder.and_(figure.locator(".gone"))).to_have_count(6)
    expect(figure.get_by_role("img", name="Gone: Multi-Head Attention")).to_have_count(2)
    visit.settle()
    page.locator("body").press("ArrowRight")
    expect(changed).to_have_text([r"Learned Positions5 × 128 · 131,072"], use_inner_text=False)
    expect(figure.locator(".was")).to_have_text(["Positional Encoding5 × 128"])
    expect(encoder).to_have_count(0)
    visit.settle()
    stops.nth(5).click()
    expect(page.locator(".stage .finding")).to_contain_text("norm before each sublayer")
    expect(changed).to_have_count(3)
    expect(figure.locator(".was")).to_have_text(["Add & Norm5 × 128 · 6 × 256"] * 2)
    visit.settle()
    assert "swap=pre-norm" in page.url
    stops.nth(5).press("ArrowLeft")
    expect(current).to_contain_text("GELU")
    expect(current).to_be_focused()


def test_an_old_address_opens_at_its_part(visit):
    page = visit.open(f"{LINEAGE}&picture=One+part&swap=rotary").page
    expect(page.locator(".st-key-swap_line [aria-current=step]")).to_contain_text("rotary")
    expect(page.locator(".st-key-model_map .gone[role]")).to_contain_text(["Learned Positions"])
