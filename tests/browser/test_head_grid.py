"""The grid of all heads: pointer, keys, and what it says of both; then in the app."""

import re
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import expect
from plotly.colors import find_intermediate_color, unlabel_rgb

from headlight.app import theme
from headlight.app.components.head_grid import answers as place_of_answers
from headlight.app.components.head_grid import head_grid
from headlight.app.components.packing import (
    GridOptions,
    GridText,
    PackedAttention,
    PackedPredictions,
    pack,
)
from headlight.app.components.paint import paint
from headlight.app.lessons.question import Veil
from headlight.model import checkpoint
from tests.app.test_packing import weights_of

pytestmark = pytest.mark.browser
SOURCE = ["A", "dog", "runs", "on", "the", "beach", "."]
TARGET = ["<s>", "Ein", "Hund", "rennt", "am", "Strand", "."]
NAMES = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross-attention",
}
SIDES = {
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
    "cross": ("target", "source"),
}
FOCUS = dict(kind="cross", layer=1, head=2)
LOOK = GridOptions(
    focus=FOCUS,
    show="all kinds",
    scale="linear",
    order={},
    average="",
    least=0.0,
    palette=theme.WEIGHTS,
    colour=theme.FOCUS,
    acts=True,
    session="one",
)
PAINTED_ROW = """(({ place, corner, picture }) => [0, 1, 2, 3, 4, 5, 6].map((column) => {
  const scale = picture.width / picture.clientWidth;
  const at = [corner[0] + (column + 0.2) * place.across, corner[1] + 3.2 * place.down];
  return picture.getContext("2d").getImageData(...at.map((x) => scale * x), 1, 1).data.join();
}))(grid.selected)"""
NOTE_TEXTS = """() => {
  window.written = [];
  const write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
    written.push(text);
    return write.call(this, text, ...at);
  };
}"""  # what is drawn on canvases from then on
REST = 400  # ms, in which the server hears of a key


def attention(kinds, source=SOURCE, target=TARGET, layers=4, heads=4) -> dict[str, np.ndarray]:
    """Random weights, (layers, heads, query, key) by kind."""
    random, lengths = np.random.default_rng(0), {"source": len(source), "target": len(target)}
    found = {}
    for kind in kinds:
        scores = 2 * random.normal(size=(layers, heads, *(lengths[side] for side in SIDES[kind])))
        if kind == "decoder":
            scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
        shares = np.exp(scores)
        found[kind] = (shares / shares.sum(axis=-1, keepdims=True)).astype(np.float32)
    return found


def packed(
    weights, source=SOURCE, target=TARGET, answers=None, following=(), shifts=(), signed=0.0
) -> bytes:
    """`following` of the target, `shifts` of cross-attention; `signed` as in pack."""
    sides = {
        "source": GridText("Source", source, [True] * len(source)),
        "target": GridText("Target", target, [True] * len(target), following),
    }
    parts = [
        PackedAttention(
            kind,
            NAMES[kind],
            *SIDES[kind],
            cells,
            range(1, len(cells) + 1),
            shifts if kind == "cross" else (),
        )
        for kind, cells in weights.items()
    ]
    return pack(sides, parts, answers, signed)


class Grid:
    """The grid in the words of these tests; layers and heads counted from 1."""

    def __init__(self, page):
        self.page = page

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

    def expect_cells(self, attention: dict[str, np.ndarray]) -> None:
        """Every weight is there, to a byte."""
        for kind, weights in attention.items():
            cells = self.picture(f"Array.from(grid.part('{kind}').cells)")
            cells = np.array(cells, dtype=float).reshape(weights.shape)
            assert np.abs(weights_of(cells) - weights).max() <= 0.0026
            assert np.array_equal(cells == 0, weights == 0)


class MountedGrid(Grid):
    def __init__(self, mounted):
        super().__init__(mounted.page)
        self.mounted, self.weights = mounted, attention(NAMES)
        self.show(packed(self.weights))

    def show(self, packed: bytes, look: GridOptions = LOOK) -> "MountedGrid":
        nobody = dict.fromkeys(("on_focus", "on_cell", "on_act"))
        self.mounted(head_grid, packed, look, **nobody, fresh=False)
        return self

    def look(self, **other) -> "MountedGrid":
        return self.show(packed(self.weights), replace(LOOK, **other))

    def sent(self, name: str) -> list:
        """What it has told the server under a name, once the keys have rested."""
        self.page.clock.run_for(REST)
        return [value for key, value in self.mounted.sent("head_grid") if key == name]


@pytest.fixture
def grid(mounted):
    return MountedGrid(mounted)


def percent(weight):
    return rf"{round(100 * weight)}%"


def marked(grid) -> list[int]:
    """Pixels that are marked, by section."""
    return grid.picture(
        """grid.drawn.map(({ over }) =>
             over.getImageData(0, 0, over.canvas.width, over.canvas.height).data
               .reduce((n, value, i) => n + (i % 4 === 3 && value > 0), 0))"""
    )


def picture(grid, section=0) -> str:
    """The tiles of a section, as a PNG."""
    return grid.picture(f"grid.drawn[{section}].box.querySelector('canvas').toDataURL()")


def shades(grid, side, name):
    """How strongly each token of a side is shaded, from 0 to 1."""
    shares = grid.page.locator(f".text .{side} span").evaluate_all(
        "(spans, name) => spans.map((span) => parseFloat(span.style.getPropertyValue(name)) || 0)",
        name,
    )
    return np.array(shares) / 100


def test_every_weight_arrives_and_has_the_colour_of_the_scale(grid):
    """The middle of a cell, read back from the canvas."""
    grid.expect_cells(grid.weights)
    stops = theme.WEIGHTS
    for kind, row, column in (("cross", 1, 1), ("encoder", 0, 2), ("decoder", 3, 1)):
        weight = float(grid.weights[kind][1, 2, row, column])
        pixel = grid.picture(
            f"""(() => {{
              const section = grid.drawn.find((s) => s.part.kind === "{kind}");
              const {{ x, y }} = grid.corner(section, 1 * 4 + 2);
              const canvas = section.box.querySelector("canvas");
              const {{ rows, columns }} = section.part;
              const scale = canvas.width / canvas.clientWidth;
              return [...canvas.getContext("2d").getImageData(
                scale * (x + (({column} + 0.5) * section.width) / columns),
                scale * (y + (({row} + 0.5) * section.height) / rows), 1, 1).data].slice(0, 3);
            }})()"""
        )
        place = weight * (len(stops) - 1)
        low = min(int(place), len(stops) - 2)
        ends = [tuple(int(stops[i][k : k + 2], 16) for k in (1, 3, 5)) for i in (low, low + 1)]
        expected = unlabel_rgb(
            find_intermediate_color(*(f"rgb{end}" for end in ends), place - low, colortype="rgb")
        )
        assert np.abs(np.subtract(pixel, expected)).max() <= 3


# The colours at both ends of the legend, and of the first two cells of the picture.
LEGEND = """(({ picture, place }) => {
  const context = picture.getContext("2d");
  const scale = picture.width / picture.clientWidth;
  const bars = [];
  const fill = context.fillRect;
  context.fillRect = function (...box) {
    if (this.fillStyle instanceof CanvasGradient) bars.push(box);
    return fill.apply(this, box);
  };
  grid.selected.paintView();
  delete context.fillRect;
  const [[left, top, width, height]] = bars;
  const at = (x, y) => [...context.getImageData(scale * x, scale * y, 1, 1).data].slice(0, 3);
  const { left: x0, top: y0, across, down } = place;
  const cell = (column) => at(x0 + (column + 0.2) * across, y0 + 0.2 * down);
  const end = (x) => at(x, top + height / 2);
  return { ends: [end(left + 1), end(left + width - 1)], cells: [cell(0), cell(1)] };
})(grid.selected)"""


@pytest.mark.parametrize("signed", [0.0, 0.4])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_legend_ends_in_the_colours_of_the_smallest_and_the_largest_weight(
    grid, scheme, signed
):
    """Also of a difference. The first cell has the smallest weight, the second the largest."""
    grid.page.emulate_media(color_scheme=scheme)
    weights = {"cross": grid.weights["cross"].copy()}
    weights["cross"][1, 2, 0, :2] = 1e-6, 1
    palette = theme.DIFFERENCES if signed else theme.WEIGHTS
    grid.show(packed(weights, signed=signed), replace(LOOK, palette=palette))
    seen = grid.picture(LEGEND)
    assert np.abs(np.subtract(seen["ends"], seen["cells"])).max() <= 16  # a pixel within the bar
    assert np.abs(np.subtract(*seen["cells"])).max() > 60


def test_pointing_at_a_cell_says_its_weight_and_marks_every_head(grid):
    row, column = 2, 1
    said = grid.point("encoder", 1, 2, row, column)
    weight = grid.weights["encoder"][0, 1, row, column]
    assert "layer 1 head 2" in said and f"puts {percent(weight)} of its weight on" in said
    assert SOURCE[row] in said and SOURCE[column] in said
    encoder, decoder, cross = marked(grid)
    assert encoder > 1000 and cross > 1000  # the column is a source token, looked at from there
    assert decoder == 0
    grid.page.mouse.move(5, 5)
    assert marked(grid)[0] < encoder
    assert "may not attend to" in grid.point("decoder", 1, 1, 1, 4)
    assert "the only key it may attend to" in grid.point("decoder", 1, 1, 0, 0)


@pytest.mark.parametrize(
    "order", [("head_grid", "head_grid_answers"), ("head_grid_answers", "head_grid")]
)
def test_the_picture_lives_on_where_its_parts_stood_on_the_page_twice(grid, order):
    rows = [[(f"word {row}", 1.0)] for row in range(len(TARGET))]
    grid.show(packed(grid.weights, answers=PackedPredictions("target", "Next token", rows, last=5)))
    grid.mounted(place_of_answers)
    for key in order:
        grid.mounted.disturb(key)
    assert "of its weight on" in grid.point("encoder", 1, 2, 2, 1)
    expect(grid.page.locator(".selected")).to_have_count(1)
    assert grid.picture("grid.selected.picture.isConnected")
    grid.page.locator(".target span").nth(2).hover()
    expect(grid.page.locator(".answers .bar")).to_have_count(1)
    expect(grid.page.locator(".st-key-head_grid_answers .answers .bar")).to_have_text("word 2100%")


def test_a_clicked_tile_is_told_as_a_whole_until_the_pointer_leaves_it(grid):
    grid.page.mouse.click(*grid.place("encoder", 2, 2, 1, 1))
    told = grid.said()
    assert "Encoder self-attention, layer 2 head 2: " in told and "attends most to" in told
    assert grid.point("encoder", 2, 2, 3, 3) == told
    assert "of its weight on" in grid.point("encoder", 2, 3, 3, 3)
    assert "of its weight on" in grid.point("encoder", 2, 2, 3, 3)


def test_the_marked_row_stays_while_the_tokens_do(grid):
    """Also the one that is marked at first: a change brings other weights, and says what it did."""
    row = grid.picture("grid.telling().word.tokens[0].index")
    others = attention(NAMES, layers=4)
    others["cross"] = np.roll(others["cross"], 1, axis=2)  # another row is the most telling one
    mark = "grid.marked(grid.selected.told).rows.map(({ index }) => index)"
    assert grid.picture(mark) == [row]
    grid.show(packed(others), replace(LOOK, said=[("It changed.", "")]))
    assert grid.said() == "It changed." and grid.picture(mark) == [row]
    grid.show(packed(others, source=[*SOURCE[:-1], "!"]))
    assert grid.picture(mark) != [row]
    grid.show(packed(others))
    grid.picture("grid.setPin({ tokens: [{ side: 'target', index: 4 }], to: [] })")
    for said in ([("It changed.", "")], []):
        grid.show(packed(others if said else grid.weights), replace(LOOK, said=said))
        assert grid.picture(mark) == [4]


def test_the_row_that_is_spoken_of_is_marked_and_stays(grid):
    mark = "grid.marked(grid.selected.told).rows.map(({ index }) => index)"
    (first,) = grid.picture(mark)
    row = 2 if first != 2 else 3
    others = attention(NAMES, layers=4)
    others["cross"] = np.roll(others["cross"], 1, axis=2)
    points_at = {"side": "target", "index": row}
    grid.show(packed(others), replace(LOOK, points_at=points_at))
    assert grid.picture(mark) == [row]
    grid.show(packed(grid.weights))  # as trained again: the same row, to compare
    assert grid.picture(mark) == [row]
    grid.show(packed(others), replace(LOOK, points_at=points_at))
    grid.picture("grid.choose({ kind: 'encoder', layer: 0, head: 0 }, 0)")
    side = "grid.marked(grid.selected.told).rows.map(({ side }) => side)"
    assert grid.picture(side) == ["source"]  # no row of the encoder's is of the target


def test_the_row_that_a_change_is_told_of_is_framed_beside_the_token_that_was_hidden(grid):
    framed = """(({ part, place, corner: [left, top], marks }) => {
      const isDrawn = (down) => marks.getImageData(
        Math.round(left + place.width - 3), Math.round(top + down * place.down), 1, 1).data[3] > 0;
      return [...Array(part.rows).keys()].filter(
        (row) => isDrawn(row) && !isDrawn(row + 0.5) && isDrawn(row + 1));
    })(grid.selected)"""
    grid.page.locator(".source span").nth(1).click()
    assert grid.picture(framed) == []
    told = dict(said=[("It changed.", "")], points_at={"side": "target", "index": 3})
    grid.look(**told)
    assert grid.said() == "It changed." and grid.picture(framed) == [3]
    grid.page.locator(".source span").nth(2).hover()
    assert grid.picture(framed) == []


def test_bars_are_of_the_row_that_a_change_is_told_of_where_the_picture_has_no_such_row(grid):
    rows = [[(f"word {row}", 1.0)] for row in range(len(TARGET))]
    answers = PackedPredictions("target", "Next token", rows, last=5)
    encoder = replace(LOOK, focus={"kind": "encoder", "layer": 0, "head": 0})
    heading = grid.page.locator(".answers h4")
    grid.show(packed(grid.weights, answers=answers), encoder)
    expect(heading).to_have_text(f"Next token after “{TARGET[5]}”")
    told = dict(said=[("It changed.", "")], points_at={"side": "target", "index": 1})
    grid.show(packed(grid.weights, answers=answers), replace(encoder, **told))
    expect(heading).to_have_text(f"Next token after “{TARGET[1]}”")


def test_the_name_of_a_selected_column_is_coloured(grid):
    coloured = """(({ part, place: { across, letters }, corner: [left, top], marks, canvas }) => {
      const scale = canvas.width / canvas.clientWidth;
      const ink = (column) => marks.getImageData(
        ...[left + column * across, top - 4 - letters, across, letters]
          .map((x) => Math.round(scale * x))).data.filter((value, i) => i % 4 === 3 && value);
      const inks = [...Array(part.columns).keys()].map((column) => ink(column).length);
      return Math.max(...inks) ? inks.indexOf(Math.max(...inks)) : null;
    })(grid.selected)"""
    for column in (1, 3):
        grid.page.mouse.click(*cell(grid, 2, column))
        assert grid.picture(coloured) == column
        expect(grid.page.locator(".source span.here")).to_have_text(SOURCE[column])
    grid.press("Escape")
    grid.page.mouse.move(0, 0)
    assert grid.picture(coloured) is None


def test_the_last_of_slanted_names_is_whole(grid):
    long = ["Donaudampfschiff"] * 14
    text = dict(source=long, target=long)
    grid.show(packed(attention(NAMES, **text), **text))
    ink = """(({ picture, place: { turned, across, right, top } }) => {
      const scale = picture.width / picture.clientWidth;
      const { data } = picture.getContext("2d").getImageData(
        0, Math.round(scale * 30), picture.width, Math.round(scale * (top - 40)));
      const inked = [...Array(picture.width).keys()].filter((x) => {
        for (let y = 0; y * picture.width * 4 < data.length; y++)
          if (data[4 * (y * picture.width + x) + 3]) return true;
        return false;
      });
      return [turned, Math.max(...inked), picture.width, scale * (right - across / 2)];
    })(grid.selected)"""
    turned, last, width, foot = grid.picture(ink)
    assert turned and foot < last < width - 1


def test_a_selected_key_is_told_with_the_sum_of_its_column(grid):
    grid.page.locator(".source span").nth(1).click()
    weights = grid.weights["cross"][1, 2]
    assert grid.said().endswith(f"; its column adds up to {100 * weights[:, 1].sum():.0f}%.")
    grid.page.locator(".source span").nth(2).hover()
    assert "in total" not in grid.said()


def test_a_row_is_named_by_the_word_that_its_head_follows(grid):
    following = [*TARGET[1:], "</s>"]
    run = packed(grid.weights, following=following, shifts=[0, 1] * 8)
    grid.show(run)
    row, key = 2, SOURCE[1]
    read = grid.point("cross", 1, 1, row, 1)
    written = grid.point("cross", 1, 2, row, 1)
    assert f": {TARGET[row]} puts" in read
    assert f": having read {TARGET[row]}, about to write {following[row]}, it puts" in written
    assert grid.page.locator(".target span.here").inner_text() == following[row]
    for head, names, word in ((0, TARGET, "just read"), (1, following, "about to be written")):
        look = replace(LOOK, focus={"kind": "cross", "layer": 0, "head": head})
        grid.show(run, look)
        assert grid.picture("grid.selected.rowNames") == list(names)
        axis = grid.picture("grid.queryTitle(grid.selected.part)")
        assert axis == f"query (target, {word})"
    grid.page.locator(".target span").nth(row + 1).hover()  # the label of that row
    assert f"having read {TARGET[row]}, about to write {following[row]}, it attends" in grid.said()
    best = SOURCE[grid.weights["cross"][0, 1, row].argmax()]
    assert f"attends most to {best} (" in grid.said()
    grid.page.locator(".target span").first.hover()
    assert "is not written by the model" in grid.said()
    grid.page.locator(".source span").nth(1).hover()
    column = grid.weights["cross"][0, 1, :, 1]
    assert f"{key} is attended to most by {following[column.argmax()]} (" in grid.said()
    grid.picture("grid.selected.canvas.scrollIntoView({ block: 'center' })")
    x, y, across, down = grid.picture("""(() => {
      const { left, top, across, down } = grid.selected.place;
      const box = grid.selected.canvas.getBoundingClientRect();
      return [box.left + left, box.top + top, across, down]; })()""")
    grid.page.mouse.move(x + across / 2, y + (row + 0.5) * down)
    title = grid.picture("grid.selected.canvas.title")
    assert title == f"Having read {TARGET[row]}, about to write {following[row]}"
    grid.show(run, replace(LOOK, veil=[{"what": "next tokens"}]))
    assert grid.picture("grid.selected.rowNames") == list(TARGET)


def test_a_token_shades_the_text_by_the_head_in_focus(grid):
    grid.page.locator(".target span").nth(2).hover()
    weights = grid.weights["cross"][1, 2, 2]
    assert np.allclose(shades(grid, "source", "--attends"), weights, atol=0.01)
    said, best = grid.said(), SOURCE[weights.argmax()]
    assert re.search(rf"attends most to {re.escape(best)} \({percent(weights.max())}\)", said)
    grid.page.locator(".source span").nth(1).click()
    attended = grid.weights["cross"][1, 2, :, 1]
    assert np.allclose(shades(grid, "target", "--attended"), attended, atol=0.01)
    line = grid.page.locator(".text .target span").nth(int(attended.argmax()))
    shadow = line.evaluate("(span) => getComputedStyle(span).boxShadow")
    red, green, blue = map(
        float, re.search(r"srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)", shadow).groups()
    )
    assert max(red, green, blue) - min(red, green, blue) < 0.15  # grey: blue is a change's
    grid.page.mouse.move(5, 5)
    assert "is attended to most by" in grid.said()  # a clicked token stays


def test_the_text_is_shaded_by_the_head_under_the_pointer(grid):
    kind, layer, head, query, key = "encoder", 4, 1, 2, 4
    weights = grid.weights[kind][layer - 1, head - 1]
    grid.point(kind, layer, head, query, key)
    assert np.allclose(shades(grid, "source", "--attends"), weights[query], atol=0.01)
    assert np.allclose(shades(grid, "source", "--attended"), weights[:, query], atol=0.01)
    shaded = grid.page.locator(".text .target span[style*='--attend']")
    expect(shaded).to_have_count(0)  # not by the selected head of cross-attention


def test_a_tile_a_layer_and_a_kind_are_selected_by_click_and_act_as_one(grid):
    def label_of(kind, layer):
        return grid.picture(
            f"""(() => {{
              const {{ over, left, top, stepY, height }} =
                grid.drawn.find(({{ part }}) => part.kind === "{kind}");
              const box = over.canvas.getBoundingClientRect();
              return [box.left + left / 2, box.top + top + {layer - 1} * stepY + height / 2];
            }})()"""
        )

    def off(**where):
        grid.page.keyboard.press("o")
        what = dict(what="off", **where)
        assert [act["what"] for act in grid.sent("act")] == [what]

    grid.page.mouse.click(*grid.place("decoder", 4, 1, 1, 1))
    head = dict(kind="decoder", layer=3, head=0)
    assert grid.sent("focus") == [head | {"count": 1, "query": -1, "key": -1}]
    expect(grid.page.locator(".selected h3")).to_have_text(
        "Decoder self-attention, layer 4, head 1"
    )
    grid.page.locator(".stage").focus()
    off(**head, scope="head")
    grid.page.mouse.click(*label_of("encoder", 3))
    expect(grid.page.locator(".message")).to_contain_text("Encoder self-attention, layer 3 is")
    off(kind="encoder", layer=2, head=0, scope="layer")
    grid.page.locator(".section h3 span", has_text="Cross-attention").click()
    off(kind="cross", layer=0, head=0, scope="kind")
    grid.page.keyboard.press("l")  # after all layers the head again
    off(kind="cross", layer=0, head=0, scope="head")


def test_keys_choose_a_head_and_read_a_cell(grid):
    grid.page.locator(".stage").focus()
    grid.press("ArrowDown", "ArrowDown", "ArrowLeft")
    assert "layer 4 head 2" in grid.said()
    assert grid.sent("focus") == [dict(kind="cross", layer=3, head=1, count=3, query=-1, key=-1)]
    said = grid.press("Home", "Shift+ArrowDown", "Shift+ArrowRight", "Shift+ArrowRight")
    weight = grid.weights["cross"][3, 1, 1, 2]
    share = re.search(rf"puts (\d+)% of its weight on {re.escape(SOURCE[2])}", said)[1]
    assert abs(int(share) - 100 * weight) <= 0.7  # a cell is a byte, then rounded
    assert grid.sent("focus") == []
    expect(grid.page.locator(".live")).to_have_text(said)  # what a screen reader is told
    # From layer 1 of cross-attention up, over its edge: the last layer of the decoder.
    grid.press("ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp")
    assert "Decoder self-attention, layer 4 head 2" in grid.said()


def test_while_keys_are_pressed_the_server_is_left_alone_and_its_late_answers_move_nothing(grid):
    grid.page.locator(".stage").focus()
    grid.press("ArrowRight", "ArrowLeft", "ArrowDown", "ArrowLeft")
    chosen = dict(kind="cross", layer=2, head=1)
    grid.look(focus=dict(kind="cross", layer=0, head=0))
    assert grid.picture("grid.look.focus") == chosen
    assert grid.mounted.sent("head_grid") == []
    assert grid.sent("focus") == [chosen | {"count": 4, "query": -1, "key": -1}]
    grid.look(focus=dict(kind="encoder", layer=0, head=0), heard=4)  # it has heard of all by then
    assert grid.picture("grid.look.focus.kind") == "encoder"


def test_orders_scales_and_the_joint_square(grid):
    plain = picture(grid)
    assert picture(grid.look(scale="per row")) != plain
    assert picture(grid.look(average="heads", least=0.3)) != plain
    grid.look(show="joint")
    assert grid.picture("[grid.drawn.length, grid.drawn[0].part.rows]") == [1, 14]
    grid.look(show="one kind")
    assert grid.picture("grid.drawn.map(({ part }) => part.kind)") == ["cross"]
    tiles = np.random.default_rng(1).permutation(16).tolist()
    values = [f"{tile}.0 bits" for tile in range(16)]
    grid.look(order={kind: {"tiles": tiles, "values": values} for kind in NAMES})
    ordered = grid.picture("grid.drawn[0].order")
    assert ordered == {"tiles": tiles, "values": values}
    layer, head = divmod(tiles[6], 4)
    x, y = grid.place("encoder", 2, 3, 1, 1)  # the seventh place
    grid.page.mouse.move(x, y)
    assert f"layer {layer + 1} head {head + 1}:" in grid.said()


def chosen(query, key=-1):
    return {"query": query, "key": key}


def test_the_server_hears_of_the_row_or_the_cell_that_is_pinned_and_of_none(grid):
    span = grid.page.locator(".target span").nth(3)
    grid.page.evaluate(NOTE_TEXTS)
    span.click()
    assert grid.sent("cell") == [chosen(3)]
    assert grid.page.evaluate("written.at(-1)") == "selected; Esc clears"
    span.click()
    assert grid.sent("cell") == [chosen(-1)]
    assert grid.page.evaluate("written.at(-1)") == "rennt"  # pointed at
    grid.page.locator(".source span").nth(2).click()  # no row: nothing new to say
    assert grid.sent("cell") == []
    grid.press("Escape", "Home", "Shift+ArrowDown", "Shift+ArrowDown")
    assert grid.sent("cell") == [chosen(2, 0)]
    grid.press("Escape")
    assert grid.sent("cell") == [chosen(-1)]
    span.click()
    grid.sent("cell")
    grid.press("ArrowRight")
    assert [focus["query"] for focus in grid.sent("focus")] == [3]


def test_a_cell_that_the_server_names_is_selected_until_another_is(grid):
    grid.look(cell=chosen(2, 5))
    said = grid.said()
    assert re.search(rf"{TARGET[2]} puts .* of its weight on {SOURCE[5]}", said)
    assert grid.sent("cell") == []
    span = grid.page.locator(".target span").nth(3)
    span.click()
    assert grid.sent("cell") == [chosen(3)]
    grid.look(cell=chosen(2, 5), order={})  # an answer from before
    assert grid.picture("grid.pinnedCell()") == chosen(3)
    grid.look(cell=chosen(4))  # chosen on another page
    assert grid.picture("grid.pinnedCell()") == chosen(4)
    grid.look(cell=chosen(99, 99))  # of a longer sentence
    assert grid.picture("grid.pinnedCell()") == chosen(-1)


def test_a_difference_names_the_row_that_was_marked_before_or_changed_most(grid):
    marked = grid.picture("grid.telling().word.tokens[0].index")
    changed = {kind: np.zeros_like(weights) for kind, weights in grid.weights.items()}
    changed["cross"][1, 2, 4, 1:3] = -0.3, 0.3
    look = replace(LOOK, palette=theme.DIFFERENCES)
    grid.show(packed(changed, signed=0.3), look)
    assert grid.picture("grid.telling().word.tokens[0].index") == marked != 4
    assert grid.said().endswith(f"{TARGET[marked]} attends as before.")
    focus = dict(kind="cross", layer=1, head=2)
    grid.show(packed(changed, signed=0.3), replace(look, focus=dict(kind="cross", layer=0, head=0)))
    assert grid.picture("grid.telling().word") is None  # nothing has changed here
    grid.show(packed(changed, signed=0.3), replace(look, focus=focus))
    assert f"{TARGET[4]} changes most in its weight on" in grid.said()
    grid.page.locator(".text .target span").nth(4).hover()
    fills = grid.page.locator(".text .source span").evaluate_all(
        "(words) => words.map((word) => word.style.getPropertyValue('--attends-by'))"
    )
    of_picture = [theme.ramp(theme.DIFFERENCES["light"], 11)[i] for i in (2, 8)]
    colours = {f"rgb({','.join(map(str, colour))})" for colour in of_picture}
    assert any(fills) and {*fills} - {""} <= colours


def test_a_head_that_is_off_is_called_so(grid):
    tile = grid.picture("grid.look.focus.layer * grid.part('cross').heads + grid.look.focus.head")
    row = "grid.setPin({ tokens: [{ side: 'target', index: 2 }], to: [] })"
    note = "But the head is off: nothing of this is passed on."
    grid.picture(row)
    assert note not in grid.said()
    grid.show(packed(grid.weights), replace(LOOK, off={"cross": [tile]}))
    grid.picture(row)
    assert grid.said().endswith(note)
    grid.show(packed(grid.weights), replace(LOOK, off={"cross": [tile + 1], "encoder": [tile]}))
    grid.picture(row)
    assert note not in grid.said()


def test_heads_that_are_off_changed_or_without_the_pattern_look_it(grid):
    plain = [picture(grid, section) for section in range(3)]
    for name in ("off", "marked", "faded"):
        grid.look(**{name: {"encoder": [5]}})
        changed = [picture(grid, section) != plain[section] for section in range(3)]
        assert changed == [True, False, False], name


def test_small_weights_left_out_are_not_called_masked(grid):
    grid.look(focus=dict(kind="encoder", layer=0, head=0), least=0.5)
    weights = grid.weights["encoder"][0, 0]
    row, column = np.unravel_index(weights.argmin(), weights.shape)
    said = grid.point("encoder", 1, 1, row, column)
    assert "may not" not in said and "puts less than 1% of its weight" in said


def test_a_model_without_the_kind_in_focus(grid):
    """The weights of a model come before its look, while cross-attention is still in focus."""
    other = attention(["encoder"], layers=2)
    grid.show(packed(other, target=[]), LOOK)
    grid.show(packed(other, target=[]), replace(LOOK, focus=dict(kind="encoder", layer=1, head=2)))
    assert grid.picture("grid.drawn.map(({ part }) => part.kind)") == ["encoder"]
    assert "Encoder self-attention, layer 2 head 3: " in grid.said()


@pytest.mark.parametrize("width", [1280, 660])
def test_all_of_many_layers_are_in_view(grid, width):
    """Beside the selected head with low tiles; above it in columns."""
    grid.page.set_viewport_size({"width": width, "height": 900})
    few = ["the", "dog"]
    weights = attention(["encoder"], source=few, layers=20)
    focus = dict(kind="encoder", layer=0, head=0)
    grid.show(packed(weights, few, []), replace(LOOK, focus=focus, show="one kind"))
    assert (grid.picture("grid.drawn[0].tall") < 20) == (width == 660)
    foot, window = grid.picture(
        "[grid.drawn[0].over.canvas.getBoundingClientRect().bottom, window.innerHeight]"
    )
    assert foot <= window
    for count, (layer, head) in enumerate(((1, 1), (12, 3), (20, 4)), start=1):
        said = grid.point("encoder", layer, head, 1, 0)
        assert f"layer {layer} head {head}:" in said
        grid.page.mouse.click(*grid.place("encoder", layer, head, 1, 0))
        tile = dict(kind="encoder", layer=layer - 1, head=head - 1)
        assert grid.sent("focus") == [tile | dict(count=count, query=-1, key=-1)]
        expect(grid.page.locator(".selected h3")).to_contain_text(f"layer {layer}, head {head}")
    grid.page.mouse.move(5, 5)
    grid.page.locator(".stage").focus()
    assert "layer 19 head 4" in grid.press("ArrowUp")


def test_a_long_text_scrolls_above_its_tiles_and_each_cell_stands_for_several(grid):
    """1,000 tokens: pooled tiles, and the page still answers."""
    long = ["dog"] * 1000
    weights = attention(["encoder"], source=long, layers=1, heads=2)
    look = replace(LOOK, focus=dict(kind="encoder", layer=0, head=1))
    grid.show(packed(weights, long, []), look)
    assert grid.picture("grid.data.sides.source.every") == 4
    grid.page.locator(".source span").nth(500).hover()
    assert "attends most to" in grid.said()
    height, lines = grid.page.locator(".text .source").evaluate(
        "(text) => [text.clientHeight / window.innerHeight, text.scrollHeight / text.clientHeight]"
    )
    assert height <= 0.16 and lines > 5
    pooled = weights["encoder"][0, 1, 8:12, 400:404].max()
    said = grid.point("encoder", 1, 2, 2, 100)
    assert f"puts up to {percent(pooled)} of its weight on dog … dog" in said


def test_two_tokens_list_the_heads_between_them_and_a_click_selects_one(grid):
    dog, hund = SOURCE.index("dog"), TARGET.index("Hund")
    grid.page.locator(".target span").nth(hund).click()
    assert grid.sent("cell") == [chosen(hund)]
    grid.page.locator(".source span").nth(dog).click()
    weights = grid.weights["cross"][:, :, hund, dog]
    layer, head = np.unravel_index(weights.argmax(), weights.shape)
    links = grid.page.locator("button.bar")
    expect(links).to_have_count(5)
    best = f"Cross {layer + 1}.{head + 1}"
    expect(links.first).to_contain_text(best)
    most = f"In {best}, Hund puts {percent(weights.max())} of its weight on dog, more than in any"
    here = f" other head. In the selected head: {percent(weights[FOCUS['layer'], FOCUS['head']])}."
    grid.page.mouse.move(5, 5)
    assert grid.said() == most + here
    assert not shades(grid, "source", "--attends").any()  # of one of the two words alone
    expect(links.first).to_contain_text(f"{round(100 * float(weights.max()))}")
    links.first.click()
    assert grid.said() == most + " other head."
    heading = f"Cross-attention, layer {layer + 1}, head {head + 1}"
    expect(grid.page.locator(".selected h3")).to_have_text(heading)
    tile = dict(kind="cross", layer=layer, head=head)
    assert grid.sent("focus") == [tile | dict(count=1, query=hund, key=-1)]
    grid.page.locator(".stage").focus()
    grid.press("Escape")
    expect(links).to_have_count(0)
    for index in (dog, dog + 1):
        grid.page.locator(".source span").nth(index).click()
    grid.page.mouse.move(5, 5)
    assert grid.said().endswith(" The selected head does not connect them.")


def test_a_label_of_the_picture_is_clicked_like_its_word(grid):
    """One that is no word of the text stands for the strongest cell of its row."""
    grid.show(packed(grid.weights, following=[*TARGET[1:], "</s>"], shifts=[1] * 16))
    grid.picture("grid.selected.canvas.scrollIntoView({ block: 'center' })")
    left, top, first, across, above, down = grid.picture(
        """(({ place, canvas }) => {
             const box = canvas.getBoundingClientRect();
             return [box.left, box.top, place.left, place.across, place.top, place.down];
           })(grid.selected)"""
    )

    def click(x, y):
        grid.page.mouse.click(left + x, top + y)
        return grid.picture("grid.pinned")

    def row(number):
        return click(first - 8, above + (number + 0.5) * down)

    def word(side, index):
        return {"tokens": [{"side": side, "index": index}], "to": []}

    assert row(2) == word("target", 3)
    assert grid.sent("cell") == [chosen(2)]
    assert f"having read {TARGET[2]}, about to write {TARGET[3]}, it attends" in grid.said()
    last = len(TARGET) - 1
    assert row(last)["row"] == {"side": "target", "index": last}
    strongest = int(grid.weights["cross"][FOCUS["layer"], FOCUS["head"], last].argmax())
    assert grid.sent("cell") == [chosen(last, strongest)]
    assert row(1) == word("target", 2)
    assert row(1) is None
    assert click(first + 1.5 * across, above - 8) == word("source", 1)
    assert click(4, above + 2 * down) == word("source", 1)  # the name of the axis


# The frame as the browser has it and the pixels of its canvases, and the frame again with each cell
# and token of the covered row pointed at.
EVERYTHING = """() => {
  const { grid } = window.headlight;
  const { frame } = grid, part = grid.part("cross"), seen = [];
  const pixels = () => [...frame.querySelectorAll("canvas")].map((canvas) => canvas.toDataURL());
  const pointed = [...Array(part.columns).keys()].map((column) => grid.cell(part, 6, 3, column));
  for (const [side, { labels }] of Object.entries(grid.data.sides))
    for (const index of labels.keys()) pointed.push({ tokens: [{ side, index }], to: [] });
  for (const each of [null, ...pointed]) {
    grid.hover(each);
    seen.push(frame.outerHTML);
  }
  seen.push(...pixels());
  document.documentElement.style.setProperty("--hl-present", "1");
  grid.draw();
  seen.push(...pixels());
  document.documentElement.style.removeProperty("--hl-present");
  return seen;
}"""


@pytest.mark.parametrize("what", ["row", "column", "next tokens"])
def test_nothing_of_what_a_lesson_covers_is_drawn_or_said(grid, what):
    """Two runs that differ in it alone look the same in every display."""
    weights, others = grid.weights, {kind: cells.copy() for kind, cells in grid.weights.items()}
    words = "Ein", "Der" if what == "next tokens" else "Ein"
    if what == "row":
        others["cross"][1, 2, 3] = weights["cross"][1, 2, 3, ::-1]
    elif what == "column":
        others["cross"][1, 2] = weights["cross"][1, 2, ::-1, ::-1]
    runs = []
    for cells, word in zip((weights, others), words, strict=True):
        rows = [[(word, 0.75)]] * len(TARGET)
        answers = PackedPredictions("target", "Next token", rows, last=6)
        following = [*TARGET[1:4], word, *TARGET[5:], "</s>"]
        runs.append(packed(cells, answers=answers, following=following, shifts=[1] * 16))

    def seen(**look):
        return [grid.show(run, replace(LOOK, **look)).page.evaluate(EVERYTHING) for run in runs]

    veil = [vars(Veil(what, "cross", 1, 2, 3))]
    for display in (
        *({"show": show} for show in ("all kinds", "one kind", "joint")),
        *({"average": average} for average in ("heads", "layers", "both")),
        *({"scale": scale} for scale in ("square root", "per row")),
    ):
        one, other = seen(veil=veil, **display)
        assert one == other, display
    one, other = seen()
    assert one != other


def test_most_probable_answers_are_those_after_the_token_that_is_pointed_at(grid):
    rows = [[(f"word {row}", 0.75), ("␣", 0.25)] for row in range(len(TARGET))]
    answers = PackedPredictions("target", "Next token", rows, last=5)
    grid.show(packed(grid.weights, answers=answers))
    heading, bars = grid.page.locator(".answers h4"), grid.page.locator(".answers .bar")
    telling = grid.picture("grid.telling().word.tokens[0].index")  # the row that is marked at first
    expect(heading).to_have_text(f"Next token after “{TARGET[telling]}”")
    grid.page.locator(".target span").nth(2).hover()
    expect(heading).to_have_text("Next token after “Hund”")
    expect(bars).to_have_text(["word 275%", "␣ (space)25%"])


@pytest.mark.parametrize(("height", "shown"), [(900, 5), (720, 3)])
def test_a_low_window_shows_fewer_answers(grid, height, shown):
    grid.page.set_viewport_size({"width": 1280, "height": height})
    rows = [[(f"word {at}", 0.2) for at in range(5)]] * len(TARGET)
    grid.show(packed(grid.weights, answers=PackedPredictions("target", "Next token", rows, last=5)))
    bars = grid.page.locator(".answers .bar")
    assert [bar.is_visible() for bar in bars.all()] == [at < shown for at in range(5)]


@pytest.mark.parametrize("height", [900, 720])
@pytest.mark.parametrize("place", [2, 3, 5])
def test_the_token_that_the_text_has_is_always_among_the_answers(grid, height, place):
    """Where it is not one of the first three, it says so."""
    grid.page.set_viewport_size({"width": 1280, "height": height})
    following = [*TARGET[1:], "</s>"]
    rows = [[(f"word {at}", 0.19) for at in range(5)] for _ in TARGET]
    for row, name in zip(rows, following, strict=True):
        row[place : place + 1] = [(name, 0.19)] * (place < 5)
    wanted = [0.19 if place < 5 else 0.001] * len(TARGET)
    answers = PackedPredictions("target", "Next token", rows, 5, wanted)
    grid.show(packed(grid.weights, answers=answers, following=following))
    grid.page.locator(".target span").nth(1).hover()
    expect(grid.page.locator(".answers h4")).to_have_text(f"Next token after “{TARGET[1]}”")
    seen = [bar for bar in grid.page.locator(".answers .bar").all() if bar.is_visible()]
    texts = [bar.inner_text() for bar in seen]
    assert len(texts) == {900: max(5, place + 1), 720: 3 + (place > 2)}[height]
    (named,) = [text for text in texts if text.startswith(TARGET[2])]
    assert ("(target)" in named) == (place > 2)
    assert ("<1%" in named) == (place == 5) and named.splitlines()[0].strip() == (
        f"{TARGET[2]} (target)" if place > 2 else TARGET[2]
    )


def test_a_source_token_has_no_next_token_and_leaves_the_answers_as_they_are(grid):
    rows = [[(f"word {row}", 1.0)] for row in range(len(TARGET))]
    answers = PackedPredictions("target", "Next token", rows, last=5)
    grid.show(packed(grid.weights, answers=answers))
    heading = grid.page.locator(".answers h4")
    before = heading.inner_text()
    grid.page.locator(".source span").nth(1).click()
    assert "is attended to most by" in grid.said()
    expect(heading).to_have_text(before)
    grid.page.locator(".source span").nth(1).click()  # no longer selected
    grid.page.locator(".target span").nth(2).click()
    grid.page.locator(".source span").nth(1).hover()
    expect(heading).to_have_text("Next token after “Hund”")


def test_the_answers_name_their_row_as_the_picture_does(grid):
    answers = PackedPredictions("target", "Next token", [[("word", 1.0)]] * len(TARGET), last=5)
    following = [*TARGET[1:], "</s>"]
    grid.show(packed(grid.weights, answers=answers, following=following, shifts=[0, 1] * 8))
    heading = grid.page.locator(".answers h4")
    names = "after “Ein”", "in row “Hund”"
    for shift, (name, label) in enumerate(zip(names, ("Ein", "Hund"), strict=True)):
        grid.picture(f"grid.choose({{ kind: 'cross', layer: 0, head: {shift} }}, 0)")
        grid.page.locator(".target span").nth(1 + shift).hover()
        assert grid.picture("grid.selected.rowNames[1]") == label
        expect(heading).to_have_text(f"Next token {name}")


# Acts


def cell(grid, row, column):
    """Where a cell of the selected head is, in the large picture."""
    return grid.picture(
        f"""(() => {{
          const {{ canvas, corner: [left, top], place: {{ across, down }} }} = grid.selected;
          const box = canvas.getBoundingClientRect();
          return [box.left + left + ({column} + 0.5) * across,
                  box.top + top + ({row} + 0.5) * down];
        }})()"""
    )


def test_a_long_text_scrolls_below_labels_that_stay(grid):
    """Every label is there; cells are met where they have gone to."""
    long = [f"word{i}" for i in range(90)]
    text = dict(source=long, target=long)
    grid.show(packed(attention(NAMES, **text), **text))
    box = grid.page.locator(".selected .cells")
    room = grid.picture(
        """(({ whole, view, box, place }) => ({
          whole: [whole.offsetWidth, whole.offsetHeight],
          view: [view.offsetWidth, view.offsetHeight],
          cells: [place.across, place.down], letters: place.letters,
          window: [box.clientWidth, innerHeight], foot: box.getBoundingClientRect().bottom,
        }))(grid.selected)"""
    )
    assert min(room["cells"]) > room["letters"] >= 9
    assert all(whole > seen for whole, seen in zip(room["whole"], room["view"], strict=True))
    assert room["view"][0] <= room["window"][0] and room["foot"] <= room["window"][1]

    corner = """() => {
      const { picture, place: { left, top } } = window.headlight.grid.selected;
      const part = (x, y, width, height) => [...picture.getContext("2d")
        .getImageData(x, y, width, height).data].join();
      return { rows: part(0, top, left - 8, 80), columns: part(left, 12, 80, top - 20) };
    }"""
    # It began at the row that is told first.
    box.evaluate("(node) => { node.scrollTo(0, 0); window.headlight.grid.selected.scroll(); }")
    assert cell(grid, 80, 85)[0] > room["view"][0]
    before = grid.page.evaluate(corner)
    box.evaluate("(node) => node.scrollTo(node.scrollWidth, node.scrollHeight)")
    grid.page.wait_for_function(
        f"""(before) => {{
          const now = ({corner})();
          return now.rows !== before.rows && now.columns !== before.columns;
        }}""",
        arg=before,
    )
    grid.page.mouse.click(*cell(grid, 80, 85))
    assert grid.picture("[grid.pinned.row.index, grid.pinned.column.index]") == [80, 85]
    assert "word80" in grid.said() and "word85" in grid.said()

    # Elsewhere: its row comes into view, and the largest weight of it.
    far = """(({ part }) => grid.rows(part).slice(0, 20)
      .map((weights) => weights.indexOf(Math.max(...weights))))(grid.selected)"""
    largest = grid.picture(far)
    row = int(np.argmin(largest))
    assert largest[row] < 20
    grid.page.locator(".target span").nth(row).click()
    grid.page.wait_for_function(
        """([row, column]) => {
          const { box, place } = window.headlight.grid.selected;
          const isSeen = (scrolled, start, size, room) =>
            scrolled <= start && start + size <= scrolled + room;
          return isSeen(box.scrollTop, row * place.down, place.down, place.bottom - place.top)
            &&
              isSeen(box.scrollLeft, column * place.across, place.across, place.right - place.left);
        }""",
        arg=[row, largest[row]],
    )


def test_the_last_row_is_not_covered_by_a_bar_along_the_foot(grid):
    """A bar beside the cells takes width from them. The bars of this browser take none: one that
    does is feigned. Looked at when it is first painted: the next layout would hide a fault."""
    grid.picture(
        """(({ box, whole }) => {
          Object.defineProperty(box, "clientWidth", { get: () => box.offsetWidth -
            (box.style.overflow !== "hidden" && whole.offsetHeight > box.clientHeight ? 40 : 0) });
          const paint = grid.selected.paint;
          window.left = [];
          grid.selected.paint = function (part) {
            paint.call(this, part);
            window.left.push([part.rows, box.clientWidth - whole.offsetWidth]);
          };
        })(grid.selected)"""
    )
    words = [f"word{i}" for i in range(90)]
    for rows in (words, words[:8]):
        text = dict(source=words[:16], target=rows)
        grid.show(packed(attention(NAMES, **text), **text))
        left = dict(reversed(grid.page.evaluate("left")))[len(rows)]
        assert 0 <= left < 20


def acts(grid):
    return [act["what"] for act in grid.sent("act")]


def tool(grid, name):
    grid.page.get_by_label("Action on a cell").select_option(name)


def test_a_head_without_a_pattern_is_said_to_be_even(grid):
    """Unless one row is not: of 7 keys none gets more than twice its share."""
    weights = {kind: cells.copy() for kind, cells in grid.weights.items()}
    weights["cross"][1, 2] = 1 / len(SOURCE)
    said = grid.show(packed(weights)).said()
    assert said == "Every row spreads its weight almost evenly: no key gets more than 14%."
    assert marked(grid) and not grid.page.locator(".text .here").count()
    rows = np.tri(len(TARGET), dtype=np.float32)
    weights["decoder"][0, 0] = rows / rows.sum(axis=1, keepdims=True)
    causal = replace(LOOK, focus=dict(kind="decoder", layer=0, head=0))
    said = grid.show(packed(weights), causal).said()  # two rows have one key and two
    assert said == (
        "Every row spreads its weight almost evenly: with more than two keys, none gets more than "
        "33%."
    )
    weights["cross"][1, 2, 3] = [0.4, *[0.1] * 6]
    assert "almost evenly" not in grid.show(packed(weights)).said()
    assert "almost evenly" not in grid.show(packed(weights), replace(LOOK, in_lesson=True)).said()


def test_a_head_is_switched_off_by_its_key_before_anything_is_clicked(grid):
    grid.press("o")
    assert acts(grid) == [FOCUS | {"what": "off", "scope": "head"}]
    grid.page.evaluate("document.body.append(document.createElement('input'))")
    grid.page.locator("body > input").focus()
    grid.press("o")  # that is a letter
    assert acts(grid) == []


def test_a_token_is_hidden_by_button_and_by_key_and_shown_again(grid):
    token = dict(what="hide", side="source", index=1)
    grid.page.locator(".source span").nth(1).click()
    grid.page.get_by_role("button", name="Hide dog (H)").click()
    assert acts(grid) == [token]
    grid.look(hidden={"source": [1]})
    assert "hidden" in grid.page.locator(".source span").nth(1).get_attribute("class")
    expect(grid.page.get_by_role("button", name="Show dog (H)")).to_be_visible()
    grid.page.locator(".stage").focus()
    grid.page.keyboard.press("h")
    assert acts(grid) == [token]


def test_a_cell_is_masked_by_mouse_and_by_key(grid):
    paint = dict(what="paint", **FOCUS, row=1, column=2, allow=False)
    tool(grid, "mask")
    grid.page.mouse.click(*cell(grid, 1, 2))
    assert acts(grid) == [paint | {"scope": "head"}]
    grid.page.get_by_label("What to change").select_option("layer")
    grid.page.mouse.click(*cell(grid, 1, 2))
    assert acts(grid) == [paint | {"scope": "layer"}]
    tool(grid, "point")
    grid.page.mouse.click(*cell(grid, 1, 2))
    grid.page.locator(".stage").focus()
    grid.press("l", "m")
    assert acts(grid) == [paint | {"scope": "kind"}]
    grid.weights["cross"][1, 2, 1, 2] = 0  # masked by now
    grid.look()
    grid.press("l", "m")
    assert acts(grid) == [paint | {"allow": True, "scope": "head"}]


def test_a_weight_is_changed_by_key_and_by_dragging(grid):
    before = float(grid.weights["cross"][1, 2, 1, 1])
    grid.page.mouse.click(*cell(grid, 1, 1))
    grid.page.locator(".stage").focus()
    grid.press("+", "+", "-")
    weights = [act["weight"] for act in acts(grid)]
    assert weights == pytest.approx([before + 0.1, before + 0.2, before + 0.1], abs=0.01)
    tool(grid, "weight")
    (x, y), height = cell(grid, 1, 2), grid.picture("grid.selected.canvas.clientHeight")
    grid.page.mouse.move(x, y)
    grid.page.mouse.down()
    grid.page.mouse.move(x, y - height / 4, steps=4)
    was = float(grid.weights["cross"][1, 2, 1, 2])
    said = re.search(r"puts (\d+)% of its weight on runs", grid.said())[1]
    assert int(said) == pytest.approx(100 * (was + 0.25), abs=2)
    grid.page.mouse.move(x, y - height / 2, steps=4)
    grid.page.mouse.up()
    (act,) = acts(grid)
    assert act.pop("weight") == pytest.approx(min(1, was + 0.5), abs=0.02)
    assert act == dict(what="weigh", **FOCUS, row=1, column=2)
    grid.page.mouse.click(*cell(grid, 1, 1))  # which drags nothing
    grid.page.mouse.click(*cell(grid, 1, 1), button="right")
    assert acts(grid) == []


def test_cells_of_words_are_none_of_the_models(grid):
    """A tool that was taken before is put down where cells cannot be changed."""
    tool(grid, "mask")
    grid.look(acts=False)
    grid.page.mouse.click(*cell(grid, 1, 1))
    grid.page.keyboard.press("m")
    assert acts(grid) == []


def test_a_selected_cell_is_not_carried_to_heads_of_other_texts(grid):
    grid.page.mouse.click(*cell(grid, 1, 1))
    grid.page.mouse.move(5, 5)
    expect(grid.page.locator(".message")).to_contain_text("of its weight on")
    grid.look(focus=dict(kind="encoder", layer=0, head=0))
    assert grid.picture("grid.pinned") is None
    grid.page.locator(".stage").focus()
    grid.press("m", "+")
    assert acts(grid) == []


def test_tokens_show_how_their_probability_moved(grid):
    grid.look(moved={"target": [None, -0.5, 2.0, *[0.0] * 4]})
    spans = grid.page.locator(".target span")
    bars = spans.evaluate_all("all => all.map((s) => s.style.getPropertyValue('--moved'))")
    assert bars[:4] == ["0%", "25%", "100%", "0%"]
    assert "less" in spans.nth(1).get_attribute("class")
    assert "−0.50" in spans.nth(1).get_attribute("title")


# In the app


TEXTS = "model=uneven&source=the+dog+sees+the+cat&target=ein+Hund+sieht"


@pytest.fixture
def here(visit):
    """The grid in the app."""
    grid = Grid(visit.page)
    grid.visit = visit
    return grid


@pytest.fixture(scope="module")
def uneven(models):
    return checkpoint.load(models / "uneven")


def test_selections_reach_the_server_the_address_and_other_pages(here, uneven):
    visit, page = here.visit.open(f"?{TEXTS}&kind=cross&layer=2&head=3"), here.page
    trace = uneven.trace("the dog sees the cat", "ein Hund sieht")
    here.expect_cells(trace.attention)
    page.mouse.click(*here.place("decoder", 4, 1, 1, 1))
    visit.settle()
    shown = np.nan_to_num(np.array(visit.cells("head_figure"), dtype=float))
    assert np.allclose(shown, trace.attention["decoder"][3, 0], atol=1e-6)
    page.locator(".stage").focus()
    here.press("ArrowUp", "ArrowRight")
    visit.settle()
    assert all(part in page.url for part in ("kind=decoder", "layer=3", "head=2"))
    page.keyboard.press("o")
    badge = page.get_by_role("button", name="Decoder 3.2 off ×")
    expect(badge).to_be_visible()
    visit.settle()
    assert here.picture("grid.look.off.decoder") == [2 * 4 + 1]
    assert "changes=decoder.3.2%3Doff" in page.url
    badge.click()
    expect(badge).to_have_count(0)
    visit.idle()
    assert not here.picture("grid.look.off?.decoder")
    page.locator(".target span").nth(1).click()
    visit.settle()
    assert "follow=2+" in page.url
    before = picture(here)
    visit.go("PyTorch").expect_head("Decoder self-attention", 3, 2)
    visit.go("Inside a head")  # follows the query that was selected
    follows = page.get_by_test_id("stSelectbox").filter(has_text="Query").locator("[value]")
    expect(follows).to_have_attribute("value", f"2 {trace.tgt.tokens[1]}")
    visit.go("Attention")
    assert page.locator(".target span").count() == len(here.picture("grid.spans.target"))
    assert page.locator(".sections canvas").count() == 6
    assert picture(here) == before and here.picture("grid.stage.isConnected")
    for model, kinds in (("classifier", ["encoder"]), ("deep", ["encoder", "decoder", "cross"])):
        page.get_by_role("combobox", name="Model").click()
        page.get_by_role("option", name=model, exact=True).click()
        visit.idle()
        assert here.picture("grid.drawn.map(({ part }) => part.kind)") == kinds
    # Twenty buttons would take a line of their own.
    visit.menu("head_picker")
    expect(page.get_by_role("combobox", name="Layer")).to_be_visible()


def test_the_causal_mask_is_reached_and_changed_by_keys(here):
    visit, page = here.visit.open(f"?{TEXTS}"), here.page
    page.locator(".stage").focus()
    for _ in range(60):  # the sidebar comes before the grid
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == "Causal mask":
            break
    else:
        raise AssertionError("the mask cannot be reached by keys")
    page.keyboard.press("Space")
    visit.settle()
    assert "causal=false" in page.url
    assert here.picture("grid.part('decoder').cells.every((byte) => byte > 0)")


def test_a_focus_change_sends_no_weights_again(visit):
    frames = []
    visit.page.once(
        "websocket", lambda s: s.on("framereceived", lambda frame: frames.append(len(frame)))
    )
    words = ["the", "dog", "sees"] * 20
    visit.open(f"?model=uneven&kind=decoder&source={'+'.join(words)}&target=ein+Hund")
    assert max(frames) > 2 * 4 * 60 * 60  # the weights of the encoder, at least
    frames.clear()
    visit.choose("layer", 3)
    assert 0 < max(frames) < 20_000  # the one head in full


def test_what_is_chosen_reaches_the_grid(here, uneven):
    """How the heads are read, filtered and ordered."""
    text = "source=A+Huntsman+runs.&target=ein+Hund&model=uneven"
    here.visit.open(
        f"?{text}&words=true&special=hide&kind=encoder&least=0.3&order=entropy"
        "&pattern=previous+token"
    )
    shown = here.page.locator(".source span").all_text_contents()
    assert shown == ["A", "Huntsman", "runs", "."]
    assert here.visit.labels("head_figure", "yaxis") == shown
    cells = np.array(here.visit.cells("head_figure"), dtype=float)  # blank rows have none left
    assert (cells >= 0.3).any() and not ((cells > 0) & (cells < 0.3)).any()
    expect(here.page.get_by_text("Tokens are merged into words")).to_be_visible()
    order = here.picture("grid.drawn[0].order")
    numbers = [float(order["values"][tile].split()[0]) for tile in order["tiles"]]
    assert sorted(order["tiles"]) == list(range(8)) and numbers == sorted(numbers)
    assert not here.picture("grid.look.acts")  # cells of words are none of the model's
    faded = here.picture("grid.look.faded")
    assert set(faded) == {"encoder", "decoder", "cross"} and len(faded["cross"]) == 20
    here.visit.open(f"?{text}&order=change&causal=false&show=joint&scale=per+row")
    order = here.picture("grid.look.order.decoder")
    numbers = [int(order["values"][tile].split("%")[0]) for tile in order["tiles"]]
    assert numbers == sorted(numbers, reverse=True) and numbers[0] > 0
    assert here.picture("[grid.drawn.length, grid.look.scale]") == [1, "per row"]


def test_the_figure_shows_a_part_of_the_longest_text(here, uneven):
    """From tokens that are chosen."""
    text = " ".join(["dog"] * 999)
    here.visit.open(f"?{TEXTS}&kind=encoder&layer=1&head=1").type(text)
    assert here.picture("grid.data.sides.source.every") == 4
    cells = np.array(here.visit.cells("head_figure"))
    assert cells.shape == (512, 512)
    for name, first in (("query", "489"), ("key", "101")):
        box = here.page.get_by_label(f"From {name}", exact=True)
        box.fill(first)
        box.press("Enter")
        here.visit.idle()
    whole = uneven.trace(text, "ein Hund sieht").attention["encoder"][0, 0]
    assert np.abs(cells - whole[:512, :512]).max() <= 1e-6
    shown = np.array(here.visit.cells("head_figure"))
    assert np.abs(shown - whole[488:1000, 100:612]).max() <= 1e-6 < np.abs(shown - cells).max()


def test_hover_over_the_one_head_names_both_tokens(visit):
    visit.open("?model=uneven&kind=encoder&source=the+dog+the+%3Cb%3E").zoom()
    visit.page.locator(".st-key-head_figure").scroll_into_view_if_needed()
    rows = len(visit.cells("head_figure"))
    said = visit.page.locator(".st-key-head_figure .hoverlayer")
    for moved in range(50):  # Plotly may draw once more, elsewhere, and loses what it said before
        box = visit.page.locator(".st-key-head_figure .nsewdrag").bounding_box()
        x, y = box["x"] + box["width"] * 1.5 / rows, box["y"] + box["height"] * 2.5 / rows
        visit.page.mouse.move(x + moved % 2, y)
        visit.page.wait_for_timeout(100)
        if "query (source): thekey (source): dog" in said.text_content():
            break
    expect(said).to_contain_text("query (source): thekey (source): dog")


def test_a_covered_row_is_painted_in_the_large_picture(grid):
    """By dragging, by clicks and by the sliders beside it: one guess, seen in its row alone."""
    grid.look(veil=[vars(Veil("row", "cross", 1, 2, 3))])
    grid.mounted(paint, "guess", SOURCE, False, on_painted=lambda guess: None)
    covered = grid.picture(PAINTED_ROW)
    box = grid.picture(
        """(({ place, corner, canvas }) => {
             const { left, top } = canvas.getBoundingClientRect();
             return [left + corner[0], top + corner[1], place.across, place.down,
                     canvas.clientHeight];
           })(grid.selected)"""
    )
    left, top, across, down, height = box
    mouse, y = grid.page.mouse, top + 3.5 * down
    for column, share in ((0, 0.6), (1, 0.3), (2, 0)):
        x = left + (column + 0.5) * across
        mouse.move(x, y)
        mouse.down()
        mouse.move(x, y - share * height, steps=4)
        mouse.up()
    assert grid.picture("grid.pinned") is None  # letting go elsewhere is no click there
    sliders = grid.page.locator("input[type=range]")
    values = [int(sliders.nth(i).input_value()) for i in range(len(SOURCE))]
    assert values == pytest.approx([60, 30, 20, 0, 0, 0, 0], abs=1)
    assert grid.picture("grid.painting.shares") == pytest.approx(np.divide(values, sum(values)))
    painted = grid.picture(PAINTED_ROW)
    assert [a != b for a, b in zip(covered, painted, strict=True)] == [True] * 3 + [False] * 4
    grid.mounted.disturb("guess")
    assert grid.picture(PAINTED_ROW) == painted
    sliders.nth(3).fill("50")
    assert grid.picture(PAINTED_ROW)[3] != covered[3]
    # What is done to a cell of another row is what was done before.
    grid.page.evaluate("scrollTo(0, 0)")
    mouse.click(left + 0.5 * across, top + 1.5 * down)
    assert sliders.first.input_value() == str(values[0])
    assert grid.picture("grid.pinned.row.index") == 1
    grid.page.get_by_role("button", name="Answer").click()
    assert grid.mounted.sent("guess")[-1] == ("painted", [*values[:3], 50, 0, 0, 0])
    grid.mounted(paint, "guess", SOURCE, False, values, [1 / len(SOURCE)] * len(SOURCE))
    assert grid.picture("grid.painting") is None and grid.picture(PAINTED_ROW) == covered
