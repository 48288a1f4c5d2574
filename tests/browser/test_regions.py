"""What selecting a head draws, and that nothing is lost where acts follow each other at once."""

import random

import pytest
from playwright.sync_api import expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

pytestmark = pytest.mark.browser
TILES = ".st-key-head_grid .stage canvas"
PAINTED = "performance.getEntriesByName('grid painted').length"
# What the screen shows: address, texts, switches, and a number for each canvas.
SHOWN = """() => {
  const inside = (node) => [node, ...(node.shadowRoot ? inside(node.shadowRoot) : []),
    ...[...node.children].flatMap(inside)];
  const all = inside(document.querySelector('.stMain'));
  const sum = (canvas) => {
    if (!canvas.width || !canvas.height) return 0;
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return data.reduce((total, byte) => (total * 31 + byte) % 1000003, 7);
  };
  const root = all.find((node) => node.classList?.contains('frame'));
  return {
    address: [...new URLSearchParams(location.search)].map(String).sort(),
    text: document.querySelector('.stMain').innerText.replace(/\\s+/g, ' '),
    grid: root.innerText.replace(/\\s+/g, ' '),
    switches: all.filter((node) => node.matches?.('input[type=checkbox]'))
      .map((node) => node.getAttribute('aria-checked') ?? node.checked),
    pictures: all.filter((node) => node.localName === 'canvas').map(sum),
  };
}"""


def click_tile(page, x: float, y: float, which: int = -1) -> None:
    """Click into the maps of one kind of attention, at a share of their width and height."""
    box = page.locator(TILES).nth(which).bounding_box()
    page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])


def test_another_head_draws_no_element_and_no_map(visit):
    frames = []
    visit.page.on(
        "websocket", lambda socket: socket.on("framereceived", lambda data: frames.append(data))
    )
    visit.open("attention?model=en-de")
    frames.clear()
    painted = visit.page.evaluate(PAINTED)
    click_tile(visit.page, 0.9, 0.9)
    visit.settle()
    visit.expect_head("Cross-attention", 4, 4)
    expect(visit.page.locator(".st-key-head_picker").first).to_contain_text("head 4")
    assert "head=4" in visit.page.url and "layer=4" in visit.page.url
    drawn = [message.delta.WhichOneof("type") for message in map(ForwardMsg.FromString, frames)]
    assert "add_block" in drawn and "new_element" not in drawn
    assert visit.page.evaluate(PAINTED) == painted


def test_a_sentence_left_by_a_click_on_a_map_is_read_too(visit):
    visit.open("attention?model=en-de")
    visit.page.get_by_label("Source sentence", exact=True).fill("A cat sleeps.")
    click_tile(visit.page, 0.9, 0.9)
    visit.settle()
    visit.expect_head("Cross-attention", 4, 4)
    expect(visit.page.locator(".st-key-head_grid .text")).to_contain_text("cat")


def test_a_head_that_a_button_switched_off_stays_off_after_another_click(visit):
    visit.open("attention?model=en-de")
    click_tile(visit.page, 0.4, 0.16)
    visit.settle()
    visit.page.locator(".st-key-head_picker button >> visible=true").first.click()
    visit.page.locator(".st-key-switch_head button >> visible=true").click()
    visit.settle()
    assert "changes=cross.1.2" in visit.page.url
    expect(visit.page.locator(".st-key-switch_head").first).to_contain_text("on again")
    visit.page.locator(".st-key-head_picker button >> visible=true").first.click()
    click_tile(visit.page, 0.9, 0.9)
    visit.settle()
    visit.choose("head", 1)
    assert "changes=cross.1.2" in visit.page.url
    click_tile(visit.page, 0.4, 0.16)
    visit.settle()
    expect(visit.page.locator(".card").nth(1)).to_have_attribute("aria-pressed", "true")


ACTS = {
    "tile": lambda page, x, y: click_tile(page, 0.15 + 0.7 * x, 0.15 + 0.7 * y),
    "mask": lambda page, x, y: page.locator(".st-key-causal label").first.click(),
    "padding": lambda page, x, y: page.locator(".st-key-memory_padding label").first.click(),
    "table": lambda page, x, y: page.locator(".st-key-numbers summary").click(),
    "off": lambda page, x, y: page.keyboard.press("o"),
    "undo": lambda page, x, y: page.keyboard.press("u"),
    "sentence": lambda page, x, y: _type(page, x),
    "page": lambda page, x, y: _go_and_return(page),
}
WEIGHTS = (6, 2, 1, 2, 2, 1, 1, 1)
SENTENCES = ("A dog runs.", "Two men are talking.", "The red car is old.")


def _type(page, x: float) -> None:
    box = page.get_by_label("Source sentence", exact=True)
    box.fill(SENTENCES[int(x * len(SENTENCES))])
    box.press("Enter")
    page.mouse.click(2, 600)  # keys are for the maps again


def _go_and_return(page) -> None:
    for name, place in (("Model", ".hl-tokens"), ("Attention", TILES)):
        # a run that draws the menu anew has two of each link for a moment
        page.locator(".st-key-menu").get_by_role("link", name=name, exact=True).first.click()
        page.locator(place).last.wait_for()


SEEDS = [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 20))]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SEEDS)
def test_quick_acts_end_where_slow_ones_do(visit, seed):
    """Two acts within 0.02 to 0.3 seconds of each other, against one after the other has been
    answered: the same address, texts, switches and pictures."""
    draw = random.Random(seed)
    count = 15 if seed == 0 else 100
    acts = [
        (*draw.choices(list(ACTS), WEIGHTS), draw.random(), draw.random(), draw.uniform(20, 300))
        for _ in range(count)
    ]
    ends = []
    for quick in (False, True):
        visit.open("attention?model=en-de")
        for act, x, y, pause in acts:
            ACTS[act](visit.page, x, y)
            if quick:
                visit.page.wait_for_timeout(pause)
            else:
                visit.settle()
        visit.page.mouse.move(2, 600)
        visit.settle()
        ends.append(visit.page.evaluate(SHOWN))
    slowly, quickly = ends
    for what in slowly:
        assert quickly[what] == slowly[what], what
