"""A sweep that takes long, in a model of many heads: how far it is, and how it ends."""

import pytest
import torch
from playwright.sync_api import expect

from headlight.model import checkpoint, presets
from headlight.model.tokenizer import Tokenizer
from tests.browser.conftest import Visit
from tests.conftest import LINES, serve

pytestmark = pytest.mark.long
SIZES = dict(d_model=256, n_heads=16, d_ff=1024, n_encoder_layers=0, n_decoder_layers=12)
HEADS = 12 * 16


@pytest.fixture
def sweep(context, tmp_path):
    """The table of what each part is needed for, of a model with random weights, on a text of 120
    tokens, as soon as it begins to say how far it is."""
    torch.manual_seed(0)
    tokenizer = Tokenizer.train(LINES, vocab_size=300)
    model = presets.build("decoder_only", vocab_size=len(tokenizer), **SIZES)
    checkpoint.save(tmp_path / "many", model, "decoder_only", tokenizer, {})
    with serve(tmp_path) as address:
        visit = Visit(context.new_page(), address)
        visit.open(f"?model=many&source={'the+dog+sees+the+cat+' * 20}&all_effects=true").unfold()
        expect(stop(visit)).to_be_visible(timeout=60_000)
        yield visit
        visit.expect_well()
        visit.page.close()


def stop(visit):
    return visit.page.locator(".st-key-stop_heads").get_by_role("button")  # Streamlit has one, too


def how_far(visit):
    """How many heads were measured."""
    text = visit.page.get_by_text(f"of {HEADS} measured")
    expect(text).to_be_visible()
    return int(text.inner_text().split(" of ")[0])


def test_a_long_sweep_can_be_stopped_and_goes_on(sweep):
    assert 0 < how_far(sweep) < HEADS
    # Meanwhile the page is there, with the bar on top and what is known by then.
    expect(sweep.page.locator(".st-key-drawer .st-key-source")).to_be_visible()
    expect(sweep.page.get_by_test_id("stDataFrame")).to_be_visible()
    expect(sweep.page.get_by_role("progressbar")).to_be_visible()
    stop(sweep).click()
    sweep.idle()
    measured = how_far(sweep)
    assert 0 < measured < HEADS
    expect(sweep.page.get_by_test_id("stDataFrame")).to_be_visible()
    expect(sweep.page.get_by_role("progressbar")).to_have_count(0)
    sweep.choose("sweep", "Sublayers skipped").choose("sweep", "Heads off")  # measures no more
    assert how_far(sweep) == measured
    sweep.page.get_by_role("button", name="Continue", exact=True).click()
    expect(sweep.page.get_by_role("button", name="Continue", exact=True)).to_have_count(0)
    expect(sweep.page.get_by_text(f"of {HEADS} measured")).to_have_count(0, timeout=120_000)
    sweep.idle()
    expect(sweep.page.get_by_test_id("stDataFrame")).to_be_visible()


def test_another_page_need_not_wait_for_a_sweep(sweep):
    sweep.go("Tokenizer")
    expect(stop(sweep)).to_have_count(0)
