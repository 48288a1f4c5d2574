"""The figure of the whole model, and where its blocks lead."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
UNEVEN = "model?model=uneven&source=the+dog&target=ein+Hund"
PRE_NORM = [
    "self_attn.norm", "self_attn.self_attn", "cross_attn.norm", "cross_attn.cross_attn",
    "feed_forward.norm", "feed_forward.feed_forward",
]  # fmt: skip
MAP = ".st-key-model_map"
MODELS = "en-de", "uneven", "classifier"


def parts(visit, stack=""):
    blocks = visit.page.locator(f'{MAP} [data-part*="{stack}."][aria-pressed]')
    return blocks.evaluate_all("blocks => blocks.map((block) => block.dataset.part)")


def block(visit, part):
    return visit.page.locator(f'{MAP} [data-part="{part}"]')


def link(visit):
    """The one link to what is chosen, without scrolling."""
    link = visit.page.locator(".st-key-open_block").get_by_role("link")
    expect(link).to_be_in_viewport(ratio=1)
    return link


def pressed(visit):
    return visit.page.locator(f'{MAP} [aria-pressed="true"]')


def test_alike_layers_are_drawn_once_until_n_times_is_clicked(visit):
    visit.open(UNEVEN)
    layer = [f"decoder.0.{part}" for part in PRE_NORM]
    ends = ["decoder...embedding", "decoder...position"], ["decoder...norm"]
    assert parts(visit, "decoder") == [*ends[0], *layer, *ends[1]]
    assert parts(visit)[-2:] == ["output...generator", "output...softmax"]
    expect(visit.page.locator(f"{MAP} .bridge")).to_have_count(1)
    names = visit.page.locator(f"{MAP} .name")
    expect(names).to_have_text(["Encoder2 ×", "Decoder5 ×"])
    names.last.click()
    visit.settle()
    expect(visit.page.locator(f"{MAP} .name")).to_have_count(7)
    expect(visit.page.locator(f"{MAP} .bridge")).to_have_count(5)
    layers = [f"decoder.{i}.{part}" for i in range(5) for part in PRE_NORM]
    assert parts(visit, "decoder") == [*ends[0], *layers, *ends[1]]
    assert sum("encoder" in part and part.endswith("feed_forward") for part in parts(visit)) == 2
    assert "all_layers=true" in visit.page.url
    visit.switch("All layers")
    expect(visit.page.locator(f"{MAP} .bridge")).to_have_count(1)


def test_a_block_is_chosen_and_its_page_opens_at_its_layer(visit):
    visit.open(f"{UNEVEN}&all_layers=true")
    block(visit, "decoder.3.cross_attn.cross_attn").click()
    expect(link(visit)).to_contain_text("Open Inside a head at Cross-attention, layer 4")
    visit.settle()
    expect(pressed(visit)).to_have_attribute("data-part", "decoder.3.cross_attn.cross_attn")
    link(visit).click()
    expect(visit.page.get_by_role("heading", name="Inside a head")).to_be_visible()
    layer = visit.page.get_by_role("radiogroup", name="Layer")
    expect(layer.get_by_role("radio", checked=True)).to_have_text("4")
    visit.settle().go("Architecture")
    expect(link(visit)).to_contain_text("Open Inside a head at Cross-attention, layer 4")
    block(visit, "encoder...position").click()
    expect(link(visit)).to_contain_text("Open Positional encoding")
    visit.settle()
    link(visit).click()
    expect(
        visit.page.get_by_role("heading", name="Positional encoding", exact=True)
    ).to_be_visible()


def test_a_layer_drawn_once_stands_for_the_selected_one(visit):
    visit.open(f"{UNEVEN}&kind=cross&layer=2")
    expect(pressed(visit)).to_have_attribute("data-part", "decoder.0.cross_attn.cross_attn")
    expect(link(visit)).to_contain_text("Cross-attention, layer 2")
    block(visit, "encoder.0.feed_forward.feed_forward").click()
    expect(link(visit)).to_contain_text("Open Inside a head at Feed Forward, encoder layer 2")
    visit.settle().choose("layer", 1)
    expect(link(visit)).to_contain_text("Open Inside a head at Encoder self-attention, layer 1")


def test_keys_choose_a_block_and_follow_the_link(visit):
    visit.open(f"{UNEVEN}&kind=encoder&layer=2")
    keys = visit.page.keyboard
    pressed(visit).focus()
    for _ in range(2):  # the norm before it, then the feed-forward
        keys.press("ArrowUp")
    expect(block(visit, "encoder.0.feed_forward.feed_forward")).to_be_focused()
    keys.press("Enter")
    expect(link(visit)).to_contain_text("Open Inside a head at Feed Forward, encoder layer 2")
    visit.settle()
    expect(pressed(visit)).to_be_focused()
    expect(pressed(visit)).to_have_attribute("data-part", "encoder.0.feed_forward.feed_forward")
    keys.press("ArrowRight")
    assert visit.page.evaluate(
        "document.activeElement.shadowRoot.activeElement.dataset.part"
    ).startswith("decoder.0.")
    visit.page.locator(f"{MAP} .name").first.focus()
    keys.press("Enter")
    visit.settle()
    expect(visit.page.locator(f"{MAP} .name").first).to_be_focused()
    expect(visit.page.locator(f"{MAP} .name")).to_have_count(7)
    link(visit).focus()
    keys.press("Enter")
    expect(visit.page.get_by_role("heading", name="11. Feed-forward")).to_be_visible()
    visit.settle()
    assert "layer=2" in visit.page.url and "kind=encoder" in visit.page.url


# Where the figure is, in pixels, whether it scrolls, and how high its smallest letters are.
PLACES = """(map) => {
  const root = map.querySelector(".frame") ?? [...map.querySelectorAll("*")]
    .map((node) => node.shadowRoot?.querySelector(".frame")).find(Boolean);
  const boxes = [...root.querySelectorAll("rect, text")].map((one) => one.getBoundingClientRect());
  return {
    scrolls: root.scrollHeight > root.clientHeight + 1 || root.scrollWidth > root.clientWidth + 1,
    top: Math.min(...boxes.map(({ top }) => top)),
    bottom: Math.max(...boxes.map(({ bottom }) => bottom)),
    left: Math.min(...boxes.map(({ left }) => left)),
    right: Math.max(...boxes.map(({ right }) => right)),
    letters: Math.min(...[...root.querySelectorAll("text")]
      .map((text) => text.getBoundingClientRect().height)),
  };
}"""


@pytest.mark.parametrize(
    ("model", "projector"),
    [
        *[(model, projector) for model in MODELS for projector in (False, True)],
        ("pre_norm, untrained", False),
    ],
)
def test_the_whole_figure_and_the_details_are_in_the_first_view(visit, model, projector):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    visit.open(f"model?model={model}&source=the+dog&projector={str(projector).lower()}")
    where = visit.page.locator(MAP).evaluate(PLACES)
    bar = visit.page.locator(".st-key-top_bar").bounding_box()
    assert bar["y"] + bar["height"] <= where["top"] and where["bottom"] <= 720
    assert where["left"] >= 0 and where["right"] <= 1280
    assert not where["scrolls"] and where["letters"] >= 11
    details = visit.page.locator(".st-key-block")
    expect(details).to_be_in_viewport(ratio=1)
    link(visit)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_the_figure(visit, scheme):
    visit.page.emulate_media(color_scheme=scheme)
    visit.open(UNEVEN)
    for _ in range(2):
        found = Axe().run(visit.page, context={"include": [[MAP], [".st-key-block"]]}).response
        serious = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
        assert not serious, serious
        visit.switch("All layers")


def test_a_classifier_is_one_stack_with_a_mean_on_top(visit):
    visit.open("model?model=classifier&source=the+dog")
    assert not any(part.startswith("decoder") for part in parts(visit))
    assert parts(visit)[-3:] == ["output...mean", "output...generator", "output...log_softmax"]
    expect(visit.page.locator(f"{MAP} .bridge")).to_have_count(0)
    expect(visit.page.locator(f"{MAP} .output")).to_contain_text("Class")


def test_attention_is_masked_while_its_mask_is_on(visit):
    visit.open(UNEVEN)
    attention = block(visit, "decoder.0.self_attn.self_attn")
    expect(attention).to_contain_text("Masked Multi-Head Attention")
    visit.switch("Causal mask")
    expect(attention).not_to_contain_text("Masked")
