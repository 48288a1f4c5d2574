"""The grid of all heads: pointer, keys, and what it says of both."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from model import load

pytestmark = pytest.mark.browser
SENTENCE = "A dog runs on the beach."


@pytest.fixture(scope="module")
def trace():
    return load("en-fr").trace(SENTENCE)


@pytest.fixture
def grid(visit):
    visit.open(f"?source={SENTENCE.replace(' ', '+')}&kind=cross&layer=2&head=3")
    expect(visit.page.locator(".sections canvas").first).to_be_visible()
    return Grid(visit)


class Grid:
    """The grid in the words of these tests; layers and heads counted from 1."""

    def __init__(self, visit):
        self.visit, self.page = visit, visit.page

    def picture(self, expression: str):
        return self.page.evaluate(f"(() => {{ const grid = window.headlight.grid;"
                                  f" return {expression}; }})()")  # fmt: skip

    def place(self, kind, layer, head, row, column):
        """Where on the page a cell is."""
        at = self.picture(
            f"""(() => {{
              const section = grid.drawn.find((s) => s.part.kind === "{kind}");
              const tile = {layer - 1} * section.part.heads + {head - 1};
              const {{ x, y }} = grid.corner(section, tile);
              section.over.canvas.scrollIntoView({{ block: "center" }});
              const box = section.over.canvas.getBoundingClientRect();
              return [
                box.left + x + (({column} + 0.5) * section.width) / section.part.columns,
                box.top + y + (({row} + 0.5) * section.height) / section.part.rows,
              ];
            }})()"""
        )
        return at

    def point(self, *cell):
        self.page.mouse.move(*self.place(*cell))
        return self.said()

    def said(self):
        return self.page.locator(".message").inner_text()

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        return self.said()


def percent(weight):
    return rf"{round(100 * weight)} %"


def test_every_weight_arrives(grid, trace):
    for kind, weights in trace.attention.items():
        cells = np.array(
            grid.picture(f"Array.from(grid.part('{kind}').cells)"), dtype=float
        ).reshape(weights.shape)
        assert np.abs(np.maximum(cells - 1, 0) / 254 - weights).max() <= 0.002
        assert np.array_equal(cells == 0, weights == 0)


def test_colours_are_those_of_the_scale(grid, trace):
    """The middle of a cell, read back from the canvas."""
    from plotly.colors import find_intermediate_color, sequential, unlabel_rgb

    stops = sequential.Viridis
    for kind, row, column in (("cross", 1, 1), ("encoder", 0, 2), ("decoder", 3, 1)):
        weight = float(trace.attention[kind][1, 2, row, column])
        pixel = grid.picture(
            f"""(() => {{
              const section = grid.drawn.find((s) => s.part.kind === "{kind}");
              const sheet = grid.sheet(section.part).getContext("2d");
              const {{ rows, columns }} = section.part;
              return Array.from(
                sheet.getImageData(2 * columns + {column}, rows + {row}, 1, 1).data).slice(0, 3);
            }})()"""
        )
        place = weight * (len(stops) - 1)
        low = min(int(place), len(stops) - 2)
        ends = [tuple(int(stops[i][k : k + 2], 16) for k in (1, 3, 5)) for i in (low, low + 1)]
        expected = unlabel_rgb(
            find_intermediate_color(*(f"rgb{end}" for end in ends), place - low, colortype="rgb")
        )
        assert np.abs(np.subtract(pixel, expected)).max() <= 3


def test_pointing_at_a_cell_says_its_weight_and_marks_every_head(grid, trace):
    row, column = 2, 1
    said = grid.point("encoder", 1, 2, row, column)
    weight = trace.attention["encoder"][0, 1, row, column]
    assert "layer 1 head 2" in said and f"attends {percent(weight)} to" in said
    assert trace.src.tokens[row] in said and trace.src.tokens[column] in said
    marked = """grid.drawn.map(({ over }) =>
      over.getImageData(0, 0, over.canvas.width, over.canvas.height).data
        .reduce((n, value, i) => n + (i % 4 === 3 && value > 0), 0))"""
    encoder, decoder, cross = grid.picture(marked)
    assert encoder > 1000 and cross > 1000  # the column is a source token, looked at from there
    assert decoder == 0
    grid.page.mouse.move(5, 5)
    assert grid.picture(marked)[0] < encoder


def test_what_may_not_be_looked_at_is_said(grid):
    assert "may not attend to" in grid.point("decoder", 1, 1, 1, 4)


def test_click_makes_a_head_the_focus_on_every_page(grid, trace):
    grid.page.mouse.click(*grid.place("decoder", 4, 1, 1, 1))
    grid.visit.settle()
    assert np.allclose(
        np.nan_to_num(np.array(grid.visit.cells("head_figure"), dtype=float)),
        trace.attention["decoder"][3, 0],
        atol=1e-6,
    )
    grid.visit.go("PyTorch")
    heading = "Decoder self-attention, layer 4, head 1"
    expect(grid.page.get_by_role("heading", name=heading)).to_be_visible()
    assert "kind=decoder" in grid.page.url and "layer=4" in grid.page.url


def test_a_token_shades_the_text_by_the_head_in_focus(grid, trace):
    target = grid.page.locator(".target span")
    target.nth(2).hover()
    weights = trace.attention["cross"][1, 2, 2]
    shades = grid.page.locator(".source span").evaluate_all(
        "spans => spans.map((span) => parseFloat(span.style.getPropertyValue('--attends')) || 0)"
    )
    assert np.allclose(np.array(shades) / 100, weights, atol=0.01)
    said, best = grid.said(), trace.src.tokens[weights.argmax()]
    assert re.search(rf"attends most to {re.escape(best)} \({percent(weights.max())}\)", said)
    grid.page.locator(".source span").nth(1).click()
    looked = grid.page.locator(".target span").evaluate_all(
        "spans => spans.map((span) => parseFloat(span.style.getPropertyValue('--attended')) || 0)"
    )
    assert np.allclose(np.array(looked) / 100, trace.attention["cross"][1, 2, :, 1], atol=0.01)
    grid.page.mouse.move(5, 5)
    assert "is attended to most by" in grid.said()  # a clicked token stays


def test_keyboard_alone_chooses_a_head_reads_a_cell_and_changes_a_mask(grid, trace):
    page = grid.page
    page.locator(".stage").focus()
    grid.press("ArrowDown", "ArrowDown", "ArrowLeft")
    assert "layer 4 head 2" in grid.said()
    grid.visit.settle()
    assert "layer=4" in page.url and "head=2" in page.url
    said = grid.press("Home", "Shift+ArrowDown", "Shift+ArrowRight", "Shift+ArrowRight")
    weight = trace.attention["cross"][3, 1, 1, 2]
    share = re.search(rf"attends (\d+) % to {re.escape(trace.src.tokens[2])}", said)[1]
    assert abs(int(share) - 100 * weight) <= 0.7  # a cell is a byte, then rounded
    expect(page.locator(".live")).to_have_text(said)  # what a screen reader is told
    # From layer 1 of cross-attention up, over its edge: the last layer of the decoder.
    grid.press("ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp")
    assert "Decoder self-attention, layer 4 head 2" in grid.said()
    grid.visit.settle()
    assert "kind=decoder" in page.url
    for _ in range(60):  # the sidebar comes before the grid
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == "Causal mask":
            break
    else:
        raise AssertionError("the mask cannot be reached by keys")
    page.keyboard.press("Space")
    grid.visit.settle()
    assert "causal=false" in page.url
    assert grid.picture("grid.part('decoder').cells.every((byte) => byte > 0)")


def test_a_focus_change_sends_no_weights_again(visit):
    frames = []
    visit.page.on("websocket", lambda s: s.on("framereceived", lambda f: frames.append(len(f))))
    visit.open("?kind=encoder&source=" + "+".join(["dog", "man", "girl", "boy"] * 10))
    assert max(frames) > 16 * 41 * 41  # the weights of the encoder, at least
    frames.clear()
    visit.choose("layer", 2)
    assert max(frames) < 20_000  # the one head in full
    visit.prepared = True  # with a listener


def test_hover_over_the_one_head_names_both_tokens(visit):
    visit.open("?kind=encoder&source=the+dog+the+%3Cb%3E").zoom().page.locator(
        ".st-key-head_figure"
    ).scroll_into_view_if_needed()
    box = visit.page.locator(".st-key-head_figure .nsewdrag").bounding_box()
    rows = len(visit.cells("head_figure"))
    x, y = box["x"] + box["width"] * 1.5 / rows, box["y"] + box["height"] * 2.5 / rows
    said = visit.page.locator(".st-key-head_figure .hoverlayer")
    for moved in range(50):  # what Plotly draws once more loses what it said before
        visit.page.mouse.move(x + moved % 2, y)
        visit.page.wait_for_timeout(100)
        if "key (source): dog" in said.text_content():
            break
    expect(said).to_contain_text("query (source): the")
    expect(said).to_contain_text("key (source): dog")


def test_one_rest_one_report(grid):
    """While keys are pressed the server is left alone, and its late answers move nothing."""
    reports = grid.page.evaluate(
        """async () => {
          const grid = window.headlight.grid;
          const told = [], tell = grid.report;
          grid.report = (tile) => { told.push(tile); tell(tile); };
          const press = (key) => grid.stage.dispatchEvent(new KeyboardEvent("keydown", { key }));
          ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowLeft"].forEach(press);
          grid.setLook({ ...grid.look, focus: { kind: "cross", layer: 0, head: 0 } });
          const early = [told.length, { ...grid.look.focus }];
          await new Promise((done) => setTimeout(done, 400));
          return [...early, told];
        }"""
    )
    chosen = {"kind": "cross", "layer": 2, "head": 1}
    assert reports == [0, chosen, [chosen | {"count": 4}]]
    grid.visit.settle()
    assert "head=2" in grid.page.url and "layer=" not in grid.page.url  # 3: it opens on it


def test_orders_scales_and_the_joint_square(grid, trace):
    grid.visit.open("?show=joint&scale=per+row&order=entropy")
    assert grid.picture("grid.drawn.length") == 1
    grid.visit.open("?order=entropy&kind=encoder")
    tiles = grid.picture("grid.drawn[0].order.tiles")
    values = grid.picture("grid.drawn[0].order.values")
    numbers = [float(values[tile].split()[0]) for tile in tiles]
    assert sorted(tiles) == list(range(16)) and numbers == sorted(numbers)
    grid.visit.open("?order=change&causal=false")
    numbers = [
        int(grid.picture(f"grid.drawn[1].order.values[{tile}]").split("%")[0])
        for tile in grid.picture("grid.drawn[1].order.tiles")
    ]
    assert numbers == sorted(numbers, reverse=True) and numbers[0] > 0


def test_it_is_there_again_after_another_page(grid):
    drawn = "Array.from(grid.drawn[0].box.querySelector('canvas').getContext('2d')" \
            ".getImageData(0, 0, 300, 200).data).reduce((a, b) => a + b)"  # fmt: skip
    before = grid.picture(drawn)
    grid.visit.go("PyTorch").go("Attention")
    assert grid.page.locator(".target span").count() == len(grid.picture("grid.spans.target"))
    assert grid.page.locator(".sections canvas").count() == 6
    assert grid.picture(drawn) == before
    assert grid.picture("grid.stage.isConnected")


def test_small_weights_left_out_are_not_called_masked(grid, trace):
    grid.visit.open(f"?source={SENTENCE.replace(' ', '+')}&kind=encoder&least=0.5")
    weights = trace.attention["encoder"][0, 0]
    row, column = np.unravel_index(weights.argmin(), weights.shape)
    said = grid.point("encoder", 1, 1, row, column)
    assert "may not" not in said and percent(weights[row, column]) in said
    assert np.nanmin(np.where(weights < 0.5, visit_cells(grid), np.nan)) == 0


def visit_cells(grid):
    return np.array(grid.visit.cells("head_figure"), dtype=float)


def test_a_model_without_the_kind_in_focus(grid):
    """The weights of a model come before its look, while cross-attention is still in focus."""
    grid.page.get_by_role("combobox", name="Model").click()
    grid.page.get_by_role("option", name="classifier", exact=True).click()
    grid.visit.settle()
    assert grid.picture("grid.drawn.map(({ part }) => part.kind)") == ["encoder"]
    assert "Encoder self-attention, layer 2 head 3 is selected" in grid.said()
    assert grid.visit.errors == []


def test_many_layers_stand_in_columns_so_that_all_are_in_view(grid):
    grid.visit.open("?model=deep&source=the+dog&target=ein+Hund&kind=encoder&show=one+kind")
    assert grid.picture("grid.drawn[0].tall") < 20
    foot, window = grid.picture(
        "[grid.drawn[0].over.canvas.getBoundingClientRect().bottom, window.innerHeight]"
    )
    assert foot <= window
    # Twenty buttons would take a line of their own.
    expect(grid.page.get_by_role("combobox", name="Layer")).to_be_visible()
    for layer, head in ((1, 1), (12, 3), (20, 4)):
        said = grid.point("encoder", layer, head, 1, 0)
        assert f"layer {layer} head {head}:" in said
        grid.page.mouse.click(*grid.place("encoder", layer, head, 1, 0))
        grid.visit.settle()
        assert f"layer={layer}" in grid.page.url or layer == 1
        expect(grid.page.locator(".selected h3")).to_contain_text(f"layer {layer}, head {head}")
    grid.page.mouse.move(5, 5)
    grid.page.locator(".stage").focus()
    assert "layer 19 head 4" in grid.press("ArrowUp")


def test_words_and_special_tokens(grid):
    grid.visit.open("?source=A+Huntsman+runs.&words=true&special=hide&kind=encoder")
    shown = grid.page.locator(".source span").all_text_contents()
    assert shown == ["A", "Huntsman", "runs", "."]
    assert grid.visit.labels("head_figure", "yaxis") == shown
    expect(grid.page.get_by_text("Tokens are merged into words")).to_be_visible()


def test_longest_text_is_drawn(grid):
    """1,000 tokens: pooled tiles, a title for each kind, and the page still answers. The text
    scrolls above the tiles; the figure shows a part of the head, from tokens that are chosen."""
    text = " ".join(["dog"] * 999)
    grid.visit.open("?kind=encoder&layer=1&head=1").type(text)
    assert grid.picture("grid.data.sides.source.every") == 4
    grid.page.locator(".source span").nth(500).hover()
    assert "attends most to" in grid.said()
    height, lines = grid.page.locator(".text .source").evaluate(
        "(text) => [text.clientHeight / window.innerHeight, text.scrollHeight / text.clientHeight]"
    )
    assert height <= 0.16 and lines > 5
    cells = np.array(grid.visit.cells("head_figure"))
    assert cells.shape == (512, 512)
    for name, first in (("query", "489"), ("key", "101")):
        box = grid.page.get_by_label(f"From {name}", exact=True)
        box.fill(first)
        box.press("Enter")
        grid.visit.idle()
    whole = load("en-fr").trace(text, "Hund").attention["encoder"][0, 0]
    assert np.abs(cells - whole[:512, :512]).max() <= 1e-3
    shown = np.array(grid.visit.cells("head_figure"))
    assert np.abs(shown - whole[488:1000, 100:612]).max() <= 1e-3 < np.abs(shown - cells).max()


def test_two_tokens_list_the_heads_between_them_and_a_click_selects_one(grid, trace):
    dog, chien = trace.src.tokens.index("dog"), trace.tgt.tokens.index("chien")
    grid.page.locator(".target span").nth(chien).click()
    grid.page.locator(".source span").nth(dog).click()
    weights = trace.attention["cross"][:, :, chien, dog]
    layer, head = np.unravel_index(weights.argmax(), weights.shape)
    links = grid.page.locator("button.bar")
    expect(links).to_have_count(5)
    expect(links.first).to_contain_text(f"Cross-attention, layer {layer + 1} head {head + 1}")
    expect(links.first).to_contain_text(f"{round(100 * float(weights.max()))}")
    links.first.click()
    heading = f"Cross-attention, layer {layer + 1}, head {head + 1}"
    expect(grid.page.locator(".selected h3")).to_have_text(heading)
    grid.visit.settle()
    for name, number in (("Layer", layer + 1), ("Head", head + 1)):
        chosen = grid.page.get_by_role("radiogroup", name=name).get_by_role("radio", checked=True)
        expect(chosen).to_have_text(str(number))
    grid.page.keyboard.press("Escape")
    grid.visit.go("Inside a head")  # follows the query that was selected
    follows = grid.page.get_by_test_id("stSelectbox").filter(has_text="Query")
    expect(follows.locator("[value]")).to_have_attribute("value", f"{chien + 1} chien")


def test_a_pattern_fades_the_heads_without_it(grid):
    grid.visit.open("?pattern=previous+token&kind=encoder")
    faded = grid.picture("grid.look.faded")
    assert set(faded) == {"encoder", "decoder", "cross"} and len(faded["cross"]) == 16
    assert 0 < len(faded["encoder"]) < 16


def test_a_key_switches_the_selected_head_off_and_on(grid, trace):
    grid.stage = grid.page.locator(".stage")
    grid.stage.focus()
    grid.page.keyboard.press("o")
    badge = grid.page.get_by_role("button", name="cross.2.3=off ×")
    expect(badge).to_be_visible()
    grid.visit.settle()
    assert grid.picture("grid.look.off.cross") == [1 * 4 + 2]
    assert "changes=cross.2.3%3Doff" in grid.page.url
    badge.click()
    expect(badge).to_have_count(0)
    grid.visit.settle()
    assert not grid.picture("grid.look.off?.cross")


def test_the_text_is_shaded_by_the_head_under_the_pointer(grid, trace):
    kind, layer, head, query, key = "encoder", 4, 1, 2, 4
    weights = trace.attention[kind][layer - 1, head - 1]
    grid.point(kind, layer, head, query, key)
    for index in range(len(trace.src.tokens)):
        span = grid.page.locator(".text .source span").nth(index)
        style = span.evaluate(
            """({ style }) => ["--attends", "--attended"].map(
                 (name) => parseFloat(style.getPropertyValue(name)) || 0)"""
        )
        expected = weights[query, index], weights[index, query]
        assert np.allclose(style, 100 * np.array(expected), atol=1), index
    shaded = grid.page.locator(".text .target span[style*='--attend']")
    expect(shaded).to_have_count(0)  # not by the selected head of cross-attention
