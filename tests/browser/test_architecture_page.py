"""The figure of the whole model, and where its blocks lead."""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from headlight.app.components.model_map import Unfolded, model_map
from headlight.app.views._blocks import most_probable
from headlight.model import Masks, checkpoint, presets
from headlight.model.analysis.architecture import blocks

pytestmark = pytest.mark.browser
UNEVEN = "model?model=uneven&source=the+dog&target=ein+Hund"
PRE_NORM = [
    "self_attn.norm", "self_attn.self_attn", "cross_attn.norm", "cross_attn.cross_attn",
    "feed_forward.norm", "feed_forward.feed_forward",
]  # fmt: skip
MAP = ".st-key-model_map"
MODELS = ("uneven",)


class Map:
    """The figure of a model."""

    def __init__(self, page):
        self.page, self.map = page, page.locator(MAP)
        self.names = self.map.locator(".name")
        self.opened = self.map.locator('[aria-expanded="true"]')

    def block(self, part):
        return self.map.locator(f'[data-part="{part}"]')

    def parts(self, stack=""):
        found = self.map.locator(f'[data-part*="{stack}."][aria-expanded]')
        return found.evaluate_all("blocks => blocks.map((block) => block.dataset.part)")

    def focused(self):
        return self.page.evaluate("document.activeElement.shadowRoot.activeElement.dataset.part")


class MountedMap(Map):
    """At first with the cross-attention of layer 2 open."""

    def __init__(self, mounted, checkpoint, texts, **masks):
        super().__init__(mounted.page)
        self.page.emulate_media(reduced_motion="reduce")
        self.mounted, self.checkpoint = mounted, checkpoint
        self.trace = checkpoint.trace(*texts, masks=Masks(**masks))
        lengths = {side: len(text.ids) for side, text in self.trace.texts.items()}
        self.blocks = blocks(checkpoint.model, lengths)
        kind = list(self.trace.kinds)[-1]
        self.show(next(one for one in self.blocks if (one.kind, one.layer) == (kind, 1)))

    def show(self, chosen, all_layers=False):
        unfolded = Unfolded("What it is", "", "What it does.", ("Open it", "inside", {}))
        self.mounted(
            model_map,
            self.blocks,
            self.trace,
            most_probable(self.checkpoint, self.trace),
            chosen and (chosen, unfolded),
            1,
            all_layers,
            on_choose=print,
            on_all_layers=print,
        )

    def sent(self):
        return self.mounted.sent("model_map")


@pytest.fixture(scope="module")
def uneven(models):
    return checkpoint.load(models / "uneven")


@pytest.fixture
def figure(mounted, uneven):
    return MountedMap(mounted, uneven, ("the dog", "ein Hund"))


def test_alike_layers_are_drawn_once_until_n_times_is_clicked(figure):
    layer = [f"decoder.0.{part}" for part in PRE_NORM]
    ends = ["decoder...embedding", "decoder...position"], ["decoder...norm"]
    assert figure.parts("decoder") == [*ends[0], *layer, *ends[1]]
    assert figure.parts()[-2:] == ["output...generator", "output...softmax"]
    expect(figure.map.locator(".bridge")).to_have_count(1)
    expect(figure.names).to_have_text(["Encoder2 ×", "Decoder5 ×"])
    # A layer that is drawn once stands for the selected one.
    expect(figure.opened).to_have_attribute("data-part", "decoder.0.cross_attn.cross_attn")
    figure.names.last.click()
    assert figure.sent() == [("all_layers", True)]
    figure.show(figure.blocks[0], all_layers=True)
    expect(figure.names).to_have_count(7)
    expect(figure.map.locator(".bridge")).to_have_count(5)
    layers = [f"decoder.{i}.{part}" for i in range(5) for part in PRE_NORM]
    assert figure.parts("decoder") == [*ends[0], *layers, *ends[1]]
    encoder = [part for part in figure.parts("encoder") if part.endswith("feed_forward")]
    assert len(encoder) == 2
    figure.names.first.click()
    assert figure.sent() == [("all_layers", False)]


def test_keys_open_a_block_and_close_it(figure):
    press = figure.page.keyboard.press
    figure.opened.focus()
    for key in ("ArrowLeft", "ArrowUp", "ArrowDown", "ArrowDown"):
        press(key)
    assert figure.focused().startswith("encoder.")
    press("ArrowRight")
    assert figure.focused().startswith("decoder.0.")
    figure.block("decoder.0.cross_attn.cross_attn").focus()
    for _ in range(2):  # the norm before it, then the feed-forward
        press("ArrowUp")
    feed_forward = figure.block("decoder.0.feed_forward.feed_forward")
    expect(feed_forward).to_be_focused()
    press("Enter")
    assert figure.sent() == [("chosen", "decoder.0.feed_forward.feed_forward")]
    expect(feed_forward).to_have_attribute("aria-expanded", "true")
    expect(figure.opened).to_have_count(1)
    layer = [block for block in figure.blocks if (block.stack, block.layer) == ("decoder", 1)]
    figure.show(next(block for block in layer if block.part == "feed_forward"))
    press("Enter")
    assert figure.sent() == [("chosen", "decoder.0.feed_forward.feed_forward")]
    expect(figure.opened).to_have_count(0)
    figure.names.first.focus()
    press("Enter")
    assert figure.sent() == [("all_layers", True)]
    figure.show(figure.blocks[0], all_layers=True)
    expect(figure.names.first).to_be_focused()


def test_a_classifier_is_one_stack_with_a_mean_on_top(mounted, models):
    figure = MountedMap(mounted, checkpoint.load(models / "classifier"), ("the dog",))
    assert not any(part.startswith("decoder") for part in figure.parts())
    assert figure.parts()[-3:] == ["output...mean", "output...generator", "output...log_softmax"]
    expect(figure.map.locator(".bridge")).to_have_count(0)
    expect(figure.map.locator(".output")).to_contain_text("Class")


@pytest.mark.parametrize("preset", ["pre_norm", "paper"])
def test_blocks_stand_in_the_order_in_which_they_compute(mounted, uneven, tmp_path, preset):
    """From below; the paper adds and norms in one box above each sublayer, touching it."""
    if preset == "paper":
        model = presets.build("paper", **vars(uneven.model.config))
        checkpoint.save(tmp_path / "paper", model, "paper", uneven.tokenizer, {})
        uneven = checkpoint.load(tmp_path / "paper")
    figure = MountedMap(mounted, uneven, ("the dog", "ein Hund"))
    figure.show(None)
    for stack, sublayers in (("encoder", 2), ("decoder", 3)):
        layer = [part for part in figure.parts(stack) if part.startswith(f"{stack}.0.")]
        boxes = [figure.block(part).bounding_box() for part in layer]
        gaps = [a["y"] - b["y"] - b["height"] for a, b in pairwise(boxes)]
        assert len(layer) == 2 * sublayers and min(gaps) > 0
        touching = [gap < 6 for gap in gaps]
        assert touching == [preset == "paper" and i % 2 == 0 for i in range(len(gaps))]
    sums = figure.map.locator("circle").count()
    assert sums == (2 if preset == "paper" else 2 + 2 + 3)  # two of embeddings and positions


def test_attention_is_masked_while_its_mask_is_on(mounted, uneven):
    texts = "the dog", "ein Hund"
    attention = "decoder.0.self_attn.self_attn"
    figure = MountedMap(mounted, uneven, texts)
    expect(figure.block(attention)).to_contain_text("Masked Multi-Head Attention")
    figure = MountedMap(mounted, uneven, texts, causal=False)
    expect(figure.block(attention)).not_to_contain_text("Masked")


# In the app


def expect_open(visit, part, words):
    figure = Map(visit.page)
    expect(figure.opened).to_have_attribute("data-part", part)
    expect(visit.page.locator(".st-key-finding")).to_contain_text(words)


def test_a_block_opens_in_place_and_its_page_at_its_layer(visit):
    figure = Map(visit.open(f"{UNEVEN}&kind=cross&layer=2").page)
    cross, feed_forward = "decoder.0.cross_attn.cross_attn", "encoder.0.feed_forward.feed_forward"
    expect_open(visit, cross, "Cross-attention, layer 2 of 5: 4 heads attend from target to source")
    expect(figure.block(cross)).to_contain_text("Cross-attention, layer 2 of 5")
    key = figure.map.locator(".key span")
    expect(key).to_have_text(
        ["row: target (query)", "column: source (key)", "framed: named above", "weight 0%  100%"]
    )
    heads = figure.map.locator("a.picture")
    expect(heads).to_have_count(4)
    closed = figure.block(feed_forward).bounding_box()["height"]
    figure.block(feed_forward).click()
    expect_open(visit, feed_forward, "each token activates")
    visit.settle()
    assert figure.block(feed_forward).bounding_box()["height"] > 2 * closed
    expect(heads).to_have_count(0)  # one at a time
    visit.open(visit.page.url.removeprefix(f"{visit.address}/"))
    expect_open(visit, feed_forward, "Encoder feed forward, layer 2 of 2: each token activates")
    figure.block(feed_forward).click(position={"x": 9, "y": 9})
    expect(figure.opened).to_have_count(0)
    expect(visit.page.locator(".st-key-finding")).to_contain_text("5 decoder layers")
    visit.settle()
    figure.names.last.click()
    visit.settle()
    assert "all_layers=true" in visit.page.url
    figure.block("decoder.3.cross_attn.cross_attn").click()
    expect_open(visit, "decoder.3.cross_attn.cross_attn", "Cross-attention, layer 4 of 5")
    visit.settle()
    figure.map.locator("a.go").click()
    expect(visit.page.get_by_role("heading", name="Inside a head")).to_be_visible()
    visit.expect_head("Cross-attention", 4, 1)


def test_a_map_goes_to_its_head(visit):
    figure = Map(visit.open(f"{UNEVEN}&kind=decoder&layer=3").page)
    head = figure.map.locator("a.picture").nth(1)
    expect(head).to_have_accessible_name(re.compile("head 2, .+ attends most to .+"))
    head.focus()
    visit.page.keyboard.press("Enter")
    expect(visit.page.locator(".st-key-head_grid")).to_be_visible()
    visit.expect_head("Decoder self-attention", 3, 2)


def test_embeddings_open_as_vectors_with_their_sum(visit):
    figure = Map(visit.open(UNEVEN).page)
    figure.block("encoder...embedding").click()
    expect(figure.map.locator(".title b")).to_have_text(
        ["tokens", "+ positions", "= sum: what enters layer 1"]
    )


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_a_dot_follows_a_token_until_a_block_is_opened(visit, motion):
    visit.page.emulate_media(reduced_motion=motion)
    figure = Map(visit.open(UNEVEN).page)
    dot, button = figure.map.locator(".dot"), figure.map.locator(".play")
    expect(button).to_contain_text("Follow a token")
    visit.page.keyboard.press(" ")
    expect(button).to_contain_text("Stop")
    expect(figure.map.locator(".lit")).to_have_attribute("data-part", "encoder...embedding")
    expect(figure.map.locator(".lit")).not_to_have_attribute("data-part", "encoder...embedding")
    figure.block("encoder...embedding").click()
    expect(dot).to_have_count(0)
    expect(button).to_contain_text("Follow a token")


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


def test_the_whole_figure_and_the_details_are_in_the_first_view(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    visit.open("model?model=pre_norm,+untrained&source=the+dog")
    models = "pre_norm, untrained", *MODELS
    for model in models:
        if model in MODELS:
            choose(visit, model)
        expect_the_whole_figure(visit, model)
    visit.page.locator(".st-key-projector label").first.click()
    visit.settle()  # in Present, where the panel is hidden
    for model in reversed(models):
        if model != MODELS[-1]:
            visit.page.keyboard.press("b")  # puts the bar above the picture
            choose(visit, model)
            visit.page.evaluate("document.activeElement.blur()")
            visit.page.keyboard.press("b")
            visit.settle()
        expect_the_whole_figure(visit, model)


def choose(visit, model):
    visit.page.get_by_role("combobox", name="Model").click()
    visit.page.get_by_role("option", name=model, exact=True).click()
    visit.settle()


def expect_the_whole_figure(visit, model):
    where = visit.page.locator(MAP).evaluate(PLACES)
    bar = visit.page.locator(".st-key-top_bar").bounding_box()
    assert bar["y"] + bar["height"] <= where["top"] and where["bottom"] <= 720, model
    assert where["left"] >= 0 and where["right"] <= 1280, model
    assert not where["scrolls"] and where["letters"] >= 11, model
    assert visit.page.evaluate("document.querySelector('.stMain').scrollTop + scrollY") == 0
