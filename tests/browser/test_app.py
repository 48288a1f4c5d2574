"""The app as a person meets it: what only a browser shows."""

import numpy as np
import pytest
from playwright.sync_api import expect

from headlight.app import theme
from headlight.model import Masks, load
from tests.browser.conftest import Visit
from tests.browser.test_walk import PICTURES

pytestmark = pytest.mark.browser

MASKS = {  # switch → the attention it changes
    "Causal mask": "decoder",
    "Source padding mask": "encoder",
    "Cross padding mask": "cross",
}
BAD_TEXTS = {
    "markup": "<script>window.broken = 1</script> </script> <b>bold</b> $x$ **bold** `code`",
    "emoji": "🙂 a man 👩‍👩‍👧",
    "right to left": "שלום עולם",
    "control": "a\x07man",
    "one letter": "x",
    "never seen": "ქართული 中文",
}


def tokens(visit, side):
    return visit.page.locator(f".{side.lower()} span").all_text_contents()


def test_opens_on_an_example_and_reads_what_is_typed(visit):
    """Also odd texts, lines to choose from, and texts that cannot be read, which are kept."""
    visit.open()
    weights = np.array(visit.cells("head_figure"))
    assert np.allclose(weights.sum(axis=1), 1, atol=1e-5)
    # The head follows the word that a row predicts.
    assert visit.labels("head_figure", "yaxis") == [*tokens(visit, "Target")[1:], "&lt;/s&gt;"]
    visit.screenshot("attention")
    visit.type("Two dogs run.")
    assert tokens(visit, "Source") == ["Two", "dogs", "run", ".", "</s>"]
    assert len(visit.cells("head_figure")[0]) == 5
    # Repeated tokens keep their own rows.
    visit.type("the dog the").choose("kind", "encoder")
    assert visit.labels("head_figure", "yaxis") == ["the", "dog", "the", "&lt;/s&gt;"]
    assert visit.labels("head_figure", "xaxis") == ["the", "dog", "the", "&lt;/s&gt;"]
    assert np.shape(visit.cells("head_figure")) == (4, 4)
    expect_odd_text_as_typed(visit)
    expect_lines_as_a_list(visit)
    expect_an_answer_where_nothing_can_be_read(visit)


def expect_odd_text_as_typed(visit):
    for name, text in BAD_TEXTS.items():
        visit.type(text)
        assert visit.page.get_by_label("Source sentence", exact=True).input_value() == text, name
        joined = "".join(tokens(visit, "Source"))
        if name == "markup":
            assert "$" in joined and "**" in joined.replace("·", "") and "<b>" in joined
        assert visit.page.evaluate("window.broken") is None
        visit.cells("head_figure")
        visit.expect_well()


def expect_lines_as_a_list(visit):
    visit.type("Two dogs run.\n\nA man sleeps.")
    assert tokens(visit, "Source")[0] == "Two"
    visit.page.get_by_role("combobox", name="Line").click()
    visit.page.get_by_role("option", name="A man sleeps.").click()
    visit.settle()
    assert tokens(visit, "Source")[:2] == ["A", "man"]
    shown, address = visit.cells("head_figure"), visit.page.url
    visit.open(address.removeprefix(visit.address + "/"))
    assert visit.cells("head_figure") == shown


def expect_an_answer_where_nothing_can_be_read(visit):
    for blank in ("", "   \n \t "):
        visit.type(blank)
        expect(visit.page.get_by_text("Type a sentence")).to_be_visible()
        visit.type("A man.")
        assert tokens(visit, "Source")[0] == "A"
    text = "dog " * 2000
    visit.type(text)
    said = visit.page.get_by_test_id("stAlert").inner_text()
    assert "2,001" in said and "1,024" in said
    assert visit.page.get_by_label("Source sentence", exact=True).input_value() == text
    for page in ("PyTorch", "Positional encoding"):
        visit.go(page)
        expect(visit.page.get_by_test_id("stAlert")).to_be_visible()


def test_each_mask_changes_its_picture(visit):
    visit.open("?pad_to=24")
    target = tokens(visit, "Target")
    for label, kind in MASKS.items():
        visit.choose("kind", kind)
        on = visit.cells("head_figure")
        visit.switch(label)
        off = visit.cells("head_figure")
        assert not np.allclose(on, off, atol=1e-3), label
        assert tokens(visit, "Target") == target
        visit.screenshot(f"without-{kind}-mask")
        visit.switch(label)
        assert np.allclose(on, visit.cells("head_figure"), atol=1e-6)
    # Padding of the target stands at the end: under the causal mask no real token could see it.
    visit.choose("kind", "decoder").switch("Causal mask")
    on = np.array(visit.cells("head_figure"))
    real = len([p for p in tokens(visit, "Target") if p != "<pad>"])
    assert np.all(on[:, real:] == 0)
    visit.switch("Target padding mask")
    assert np.array(visit.cells("head_figure"))[:, real:].max() > 0


def test_pages_follow_the_same_settings(visit):
    visit.open("?source=the+dog+the&kind=encoder&layer=2&head=3&causal=false&pad_to=6")
    weights = visit.cells("head_figure")
    visit.go("PyTorch")
    assert np.allclose(visit.matrix("comparison", 0), weights, atol=1e-7)
    assert np.allclose(visit.matrix("comparison", 1), weights, atol=1e-5)
    expect(visit.page.get_by_text("PASS: they agree")).to_be_visible()
    visit.screenshot("compare")
    visit.go("Positional encoding")
    table = np.array(visit.matrix("input"))
    assert table.shape[0] == 6 and np.allclose(table[0, 0::2], 0) and np.allclose(table[0, 1::2], 1)
    embedding, added, whole = (
        visit.choose("picture", name).idle().matrix("input") for name in ("Words", "Scaled", "Sum")
    )
    assert np.allclose(np.add(embedding, added), whole, atol=1e-5)
    assert np.allclose(embedding[0], embedding[2])  # the … the
    visit.screenshot("positions")
    visit.go("Attention")
    assert np.allclose(visit.cells("head_figure"), weights, atol=1e-7)


def test_permalink_restores_the_view(visit):
    visit.open().type("Two dogs run.").type("Zwei Hunde rennen.", "Target")
    visit.choose("kind", "decoder").choose("layer", 3).choose("head", 2).switch("Causal mask")
    visit.go("PyTorch")
    shown, address = visit.matrix("comparison"), visit.page.url
    visit.menu("share")
    visit.page.get_by_role("button", name="Copy link").click()
    expect(visit.page.get_by_text("Copied.")).to_be_visible()
    assert visit.page.evaluate("navigator.clipboard.readText()") == address
    other = Visit(visit.page.context.new_page(), visit.address)
    other.open(address.removeprefix(visit.address + "/"))
    assert other.matrix("comparison") == shown
    assert other.page.url == address
    other.page.reload()
    other.settle()
    assert other.matrix("comparison") == shown
    other.expect_well()


def test_out_of_range_link_falls_back_and_is_written_back(visit):
    visit.open("?kind=sideways&layer=99&head=0&pad_to=100000&causal=perhaps&model=nobody")
    assert np.allclose(np.sum(visit.cells("head_figure"), axis=1), 1, atol=1e-5)
    # Written back a moment after the drawing.
    visit.page.wait_for_function(
        "() => !/(kind|layer|head|pad_to|causal|model)=/.test(location.search)"
    )


def test_depth_of_another_model_clamps_the_layer(visit):
    visit.open("?model=uneven&kind=decoder&layer=5&source=the+dog&target=ein+Hund")
    expect(visit.page.get_by_text("layer 5 · head 1")).to_be_visible()
    visit.choose("kind", "encoder")
    expect(visit.page.get_by_text("layer 2 · head 1")).to_be_visible()
    assert "layer=2" in visit.page.url
    for page in [*PICTURES, "Attention"]:  # where scripts of ours draw
        visit.go(page)
        visit.expect_well()


def test_a_menu_that_was_closed_brings_nothing_old_back(visit):
    """Its widgets are nowhere in the browser, which hears of no later choice and sends the old
    one."""
    visit.open("?model=uneven&source=the+dog&target=ein+Hund&kind=cross&layer=2")
    visit.choose("kind", "encoder").expect_head("Encoder self-attention", 2, 1)
    visit.menu("what_if")
    visit.type("cross.1=off", "Changes")
    visit.page.keyboard.press("Escape")
    visit.idle()
    visit.page.locator(".stage").press("o")
    visit.settle()
    visit.page.locator(".stage").press("ArrowUp")
    visit.settle().switch("Causal mask").expect_head("Encoder self-attention", 1, 1)
    badges = visit.page.locator("[class*='st-key-change_'] button >> visible=true")
    # Behind three chips the others are counted.
    expect(badges).to_have_text(["Cross layer 1 off ×"])
    expect(visit.page.get_by_text("+1 more")).to_be_visible()
    visit.page.locator(".source span").nth(1).click()
    visit.switch("Causal mask")  # which has the keys now
    assert visit.page.evaluate("!!headlight.grid.pinned")
    visit.page.keyboard.press("Escape")
    assert not visit.page.evaluate("!!headlight.grid.pinned")
    for page in ("Attention", "PyTorch"):
        visit.go(page).settle()
        for part in ("changes=cross.1%3Doff%3B+encoder.2.1%3Doff", "kind=encoder"):
            assert part in visit.page.url, page


def test_translate_again_under_masks(visit):
    masks = Masks(src_padding=False, memory_padding=False)
    visit.open("?memory_padding=false&src_padding=false&pad_to=60")
    source = visit.page.get_by_label("Source sentence", exact=True).input_value()
    en_fr = load("en-fr")
    expected = en_fr.tokenizer.decode(en_fr.translate(source, masks, pad_to=60).ids)
    assert expected != en_fr.tokenizer.decode(en_fr.translate(source).ids)
    visit.menu("output")
    visit.page.get_by_role("button", name="Translate again").click()
    visit.settle()
    box = visit.page.get_by_label("Target", exact=True)
    assert box.input_value() == expected
    visit.page.keyboard.press("Escape")
    visit.page.get_by_role("button", name="Translated with these settings ×").click()
    visit.settle()
    visit.menu("output")
    assert box.input_value() == ""


def test_back_leads_to_the_place_one_was_at(visit):
    place = "document.querySelector('.stMain').scrollTop"
    visit.page.set_viewport_size({"width": 1280, "height": 500})
    visit.open("take-away")
    visit.page.evaluate(f"{place} = 200")
    visit.settle().go("Tokenizer").back("/take-away")
    visit.page.wait_for_function(f"() => {place} === 200")


def test_what_is_reserved_is_what_bar_and_grid_take(visit):
    """Else they push the page down as they arrive, or leave a hole."""
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    heights = theme.BAR, theme.STATE, theme.ROW_OF_PAGE
    for query in ("", "?model=uneven&source=dog", "?causal=false&changes=cross.1.1%3Doff"):
        visit.open(query)
        boxes = [
            visit.page.locator(f".st-key-{key}").bounding_box()
            for key in ("bar", "state", "page", "head_grid")
        ]
        assert [round(box["height"]) for box in boxes[:3]] == [*heights]
        assert boxes[3]["height"] >= theme.GRID and boxes[3]["y"] <= sum(heights) + 10


def test_a_click_on_a_cell_of_a_sweep_selects_its_head(visit):
    visit.open("ablation?model=uneven&source=the+dog&kind=cross&layer=1&head=1")
    visit.click_cell("effects", 2, (2, 1)).go("Attention").expect_head("Cross-attention", 3, 2)
