"""The picture of the whole model, and where its blocks lead."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def parts(visit):
    return visit.page.locator(".st-key-model_map button").evaluate_all(
        "blocks => blocks.map((block) => block.dataset.part)"
    )


def test_unequal_depth_looks_unequal(visit):
    visit.open("model?model=uneven&source=the+dog&target=ein+Hund")
    found = parts(visit)
    assert sum(part.endswith("encoder.1.feed_forward") for part in found) == 1
    assert [part for part in found if part.endswith("cross_attn")] == [
        f"decoder.{i}.cross_attn" for i in range(5)
    ]
    expect(visit.page.locator(".st-key-model_map path")).to_have_count(5)


def link(visit):
    """The one link to what is chosen, without scrolling."""
    link = visit.page.locator(".st-key-open_block").get_by_role("link")
    expect(link).to_be_in_viewport()
    return link


def pressed(visit):
    return visit.page.locator('.st-key-model_map [aria-pressed="true"]')


def test_a_block_is_chosen_and_its_page_opens_at_its_layer(visit):
    visit.open("model?model=uneven&source=the+dog&target=ein+Hund")
    visit.page.locator('[data-part="decoder.3.cross_attn"]').click()
    expect(link(visit)).to_contain_text("Open Inside a head at Cross-attention, layer 4")
    visit.settle()
    expect(pressed(visit)).to_have_attribute("data-part", "decoder.3.cross_attn")
    link(visit).click()
    expect(
        visit.page.get_by_role("heading", name="Cross-attention, layer 4, head 1")
    ).to_be_visible()
    visit.settle().go("Architecture")
    expect(link(visit)).to_contain_text("Open Inside a head at Cross-attention, layer 4")
    visit.page.locator('[data-part="encoder..embedding"]').click()
    expect(link(visit)).to_contain_text("Open Positional encoding")
    visit.settle()
    link(visit).click()
    expect(
        visit.page.get_by_role("heading", name="Positional encoding", exact=True)
    ).to_be_visible()


def test_keys_choose_a_block_and_follow_the_link(visit):
    visit.open("model?model=uneven&source=the+dog&target=ein+Hund")
    blocks = visit.page.locator(".st-key-model_map button")
    blocks.last.focus()
    visit.page.keyboard.press("Tab")
    expect(link(visit)).to_be_focused()
    visit.page.locator('[data-part="encoder.1.feed_forward"]').focus()
    visit.page.keyboard.press("Enter")
    expect(link(visit)).to_contain_text("Open Inside a head at Feed-forward, encoder layer 2")
    visit.settle()
    expect(pressed(visit)).to_be_focused()
    link(visit).focus()
    visit.page.keyboard.press("Enter")
    expect(visit.page.get_by_role("heading", name="11. Feed-forward")).to_be_visible()
    visit.settle()
    assert "layer=2" in visit.page.url and "kind=encoder" in visit.page.url


def test_the_link_follows_the_sidebar_too(visit):
    visit.open("model?model=uneven&source=the+dog&kind=encoder&layer=1")
    expect(link(visit)).to_contain_text("Open Inside a head at Encoder self-attention, layer 1")
    visit.page.locator('[data-part="encoder.1.feed_forward"]').click()
    expect(link(visit)).to_contain_text("Open Inside a head at Feed-forward, encoder layer 2")
    visit.settle().choose("layer", 1)
    expect(link(visit)).to_contain_text("Open Inside a head at Encoder self-attention, layer 1")


def test_a_classifier_is_one_stack(visit):
    visit.open("model?model=classifier&source=the+dog")
    assert not any(part.startswith("decoder") for part in parts(visit))
    assert parts(visit)[-1] == "output..generator"
