"""What one changes by mouse and keys where one looks, and what is seen of it."""

import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from playwright.sync_api import expect

from headlight.app.text import part_names
from headlight.model import Masks, load
from headlight.model.probing.changes import parse
from tests.app.test_packing import weights_of

pytestmark = pytest.mark.browser
SENTENCE = "A dog runs on the beach."
PICKER = ".st-key-head_picker button >> visible=true"


@pytest.fixture
def page(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    return WhatIf(
        visit.open(f"attention?source={SENTENCE.replace(' ', '+')}&kind=cross&layer=2&head=3")
    )


class WhatIf:
    """The Attention page in the words of these tests. Rows and columns count from 0."""

    def __init__(self, visit):
        self.visit, self.page = visit, visit.page

    def of_grid(self, expression: str):
        return self.page.evaluate(f"(() => {{ const grid = window.headlight.grid;"
                                  f" return {expression}; }})()")  # fmt: skip

    def cell(self, row: int, column: int) -> tuple[float, float]:
        """Where a cell of the selected head is, in the large picture."""
        return self.of_grid(
            f"""(() => {{
              const {{ canvas, place: {{ left, top, across, down }} }} = grid.selected;
              const box = canvas.getBoundingClientRect();
              return [box.left + left + ({column} + 0.5) * across,
                      box.top + top + ({row} + 0.5) * down];
            }})()"""
        )

    def weight(self, row: int, column: int) -> float:
        """Of the selected head, as the browser has it; None where it is masked."""
        byte = self.of_grid(
            f"grid.byteAt(grid.cell(grid.part('cross'), 1 * 4 + 2, {row}, {column}))"
        )
        return float(weights_of(byte)) if byte else None

    def key(self, *keys: str) -> None:
        self.page.locator(".stage").focus()
        for key in keys:
            self.page.keyboard.press(key)
        self.visit.settle()

    def tool(self, name: str) -> None:
        self.page.get_by_label("Action on a cell").select_option(name)

    def select_token(self, side: str, index: int) -> None:
        self.page.locator(f".text .{side} span").nth(index).click()
        self.visit.settle()

    def expect_line(self, line: str) -> None:
        """The line, and a badge for each act; a word is hidden in two places by one."""
        badges = self.page.locator("[class*='st-key-change_'] button:visible")
        keys = self.of_grid("grid.data.sides.source.labels")
        chips = [f"{part_names.chip(change, keys)} ×" for change in parse(line)
                 if not str(change).startswith("encoder=hide")]  # fmt: skip
        expect(badges).to_have_text([chip.replace("Cross “", "“") for chip in chips])
        assert parse_qs(urlsplit(self.page.url).query).get("changes", [""]) == [line]


def test_what_is_done_to_tokens_cells_and_heads_changes_the_run(page):
    """Each by mouse and by key; what either sends is asked in test_head_grid.py."""
    page.select_token("source", 1)
    page.page.get_by_role("button", name="Hide dog (H)").click()
    page.visit.settle()
    page.expect_line("encoder=hide:2; cross=hide:2")
    assert "hidden" in page.page.locator(".text .source span").nth(1).get_attribute("class")
    assert page.weight(0, 1) is None
    page.key("h")
    page.expect_line("")
    assert page.weight(0, 1) is not None
    page.tool("mask")
    page.page.mouse.click(*page.cell(1, 1))
    page.visit.settle()
    page.expect_line("cross.2.3=forbid:2>2")
    assert page.weight(1, 1) is None
    assert page.of_grid("grid.look.marked.cross") == [1 * 4 + 2]
    page.page.get_by_label("What to change").select_option("layer")
    page.page.mouse.click(*page.cell(0, 0))
    page.visit.settle()
    page.expect_line("cross.2.3=forbid:2>2; cross.2=forbid:1>1")
    page.key("x")
    page.tool("weight")
    (x, y), height = page.cell(1, 2), page.of_grid("grid.selected.canvas.clientHeight")
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(x, y - height / 2, steps=4)
    page.page.mouse.up()
    page.visit.settle()
    (line,), en_fr = parse_qs(urlsplit(page.page.url).query)["changes"], load("en-fr")
    was = en_fr.trace(SENTENCE).attention["cross"][1, 2, 1, 2]
    assert page.weight(1, 2) == pytest.approx(min(1, was + 0.5), abs=0.02)
    expected = en_fr.trace(SENTENCE, changes=line).attention["cross"][1, 2, 1]
    shown = [page.weight(1, column) or 0 for column in range(len(expected))]
    assert np.abs(np.array(shown) - expected).max() <= 0.003
    page.key("x")
    page.page.locator(".section h3 span", has_text="Decoder self-attention").click()
    page.key("o")
    page.expect_line("decoder=off")
    assert page.of_grid("grid.look.off.decoder") == list(range(16))


def test_what_is_done_to_heads_is_undone_redone_reset_and_brought_back_by_a_link(page):
    page.key("o")
    page.expect_line("cross.2.3=off")
    page.select_token("source", 2)
    page.key("h")
    both = "cross.2.3=off; encoder=hide:3; cross=hide:3"
    page.expect_line(both)
    page.key("u")
    page.expect_line("cross.2.3=off")
    page.key("y")
    page.expect_line(both)
    link = page.page.url
    page.key("x")
    page.expect_line("")
    page.key("u")
    page.expect_line(both)
    page.visit.open(link.removeprefix(f"{page.visit.address}/"))
    page.expect_line(both)
    assert page.of_grid("grid.look.off.cross") == [1 * 4 + 2]
    assert page.of_grid("grid.look.hidden.source") == [2]


def expect_weight_on_later_tokens_to_be_told_where_the_causal_mask_is_off(page):
    said, picker = page.page.locator(".st-key-head_card"), page.page.locator(PICKER)
    page.visit.switch("Causal mask")
    without = "Without the causal mask, the decoder peeks: "
    expect(page.page.locator(".message")).to_contain_text(without)
    picker.click()
    expect(said).to_contain_text("puts this weight on later tokens, by layer: ")
    (leak,) = (line for line in said.inner_text().splitlines() if "later tokens" in line)
    shares = [int(share) for share in re.findall(r"(\d+)%", leak)]
    weights = load("en-fr").trace(SENTENCE, masks=Masks(causal=False)).attention["decoder"]
    expected = 100 * np.triu(weights, 1).sum(axis=-1).mean(axis=(1, 2))
    assert np.abs(np.array(shares) - expected).max() <= 0.51
    page.visit.switch("Causal mask")
    expect(said).not_to_contain_text("later tokens")
    picker.click()


def test_what_the_changes_do_is_in_view(page):
    """At 1280 × 720, nothing scrolled: which probability they move most, a bar for each token,
    tiles and the selected head, with, without and the difference."""
    expect_weight_on_later_tokens_to_be_told_where_the_causal_mask_is_off(page)
    page.key("o")
    said = page.page.locator(".message")
    moved = page.of_grid("grid.look.moved.target")
    en_fr = load("en-fr")
    target = en_fr.translate(SENTENCE).text
    ids = en_fr.tokenizer.encode(target).ids

    def shares(line):
        logits = en_fr.trace(SENTENCE, changes=line).logits.astype(np.float64)
        logits -= logits.max(axis=-1, keepdims=True)
        return (logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)))[range(len(ids)), ids]

    now, before = shares("cross.2.3=off"), shares("")
    most = np.abs(np.exp(now) - np.exp(before)).argmax()
    verb = "falls" if now[most] < before[most] else "rises"
    ends = " to ".join(f"{100 * np.exp(share[most]):.0f}%" for share in (before, now))
    expect(said).to_contain_text(f" {verb} from {ends}.")
    expect(said).to_contain_text(f"fter {page.of_grid(f'grid.data.sides.target.labels[{most}]')},")
    assert page.of_grid("grid.look.points_at") == {"side": "target", "index": most}
    assert page.of_grid("grid.selected.answered[2]") == most
    page.page.locator(PICKER).click()
    numbers = page.page.locator(".st-key-head_card")
    expect(numbers).to_contain_text("Probability of the target")
    page.page.locator(PICKER).click()
    expected = now - before
    assert moved[0] is None and np.abs(np.array(moved[1:]) - expected).max() <= 2e-3
    for box in (said, page.page.locator(".text"), page.page.locator(".sections")):
        expect(box).to_be_in_viewport(ratio=1)
    with_changes = page.of_grid("grid.data.id")
    page.visit.choose("shows", "Before")
    without = page.of_grid("grid.data.id")
    page.visit.choose("shows", "Difference")
    assert page.of_grid("grid.data.signed") > 0
    largest = max(
        np.abs(now - before).max()
        for now, before in zip(
            en_fr.trace(SENTENCE, changes="cross.2.3=off").attention.values(),
            en_fr.trace(SENTENCE).attention.values(),
            strict=True,
        )
    )
    assert page.of_grid("grid.data.signed") == pytest.approx(largest, abs=1e-5)
    page.visit.choose("shows", "Before | after")
    assert page.of_grid("grid.data.id") == with_changes != without


def test_a_long_translation_under_changes_moves_nothing_down(visit):
    """Without cross-attention it writes the longest target that it may."""
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    bar, said = visit.page.locator(".st-key-top_bar"), visit.page.locator(".message")
    heights, lengths = [], []
    for changes in ("cross.2.3=off", "decoder.3%3Doff%3B+decoder.4%3Doff%3B+cross%3Doff"):
        visit.open(f"attention?source={SENTENCE.replace(' ', '+')}&changes={changes}")
        expect(said).to_contain_text(" from ")
        expect(said).to_be_in_viewport(ratio=1)
        stage = visit.page.locator(".stage").bounding_box()["y"]
        heights.append(
            (bar.bounding_box()["height"], stage - visit.page.locator(".text").bounding_box()["y"])
        )
        lengths.append(len(visit.page.locator(".text .now").inner_text()))
        line = visit.page.locator(".text .source").bounding_box()["height"]
    assert lengths[1] > 2 * lengths[0]
    assert heights[1][0] == heights[0][0]
    assert heights[1][1] <= heights[0][1] + 2 * line  # two lines more of what it writes


def test_before_and_after_stand_side_by_side_with_one_cursor(page):
    """The weights before are those of the model as trained, over the same words; pointing at a cell
    of either marks its row in both."""
    shown = "() => !window.headlight.grid.former.root.hidden"
    assert not page.page.evaluate(shown)
    page.page.keyboard.press("n")
    page.page.wait_for_function(shown)
    page.visit.settle()
    trace = load("en-fr").trace(SENTENCE)
    before = page.of_grid("[...grid.former.grid.rows(grid.former.part)].map((row) => [...row])")
    assert np.allclose(before, trace.attention["cross"][1, 2], atol=0.01)
    after = page.of_grid("[...grid.rows(grid.selected.part)].map((row) => [...row])")
    assert not np.allclose(before, after, atol=0.05)
    sizes = [page.of_grid(f"[grid.{one}.place.across, grid.{one}.place.down]")
             for one in ("former", "selected")]  # fmt: skip
    assert np.allclose(*sizes, atol=1.5)
    box = page.page.locator(".selected canvas").nth(1).bounding_box()
    page.page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.6 * box["height"])
    pointed = page.of_grid("[grid.former.told.row.index, grid.selected.told.row.index]")
    assert pointed[0] == pointed[1]
