"""One head, walked through with the keyboard, and its pictures."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from headlight.app.components.matrices import matrices
from headlight.app.components.matrix import Matrix
from headlight.app.state.options import STEPS
from headlight.model import checkpoint

pytestmark = pytest.mark.browser
TEXTS = "the dog sees a cat", "ein Hund sieht"  # no token twice: cells are told apart by them
LINK = (
    "inside?model=uneven&kind=cross&layer=3&head=2&source=the+dog+sees+a+cat&target=ein+Hund+sieht"
)
READ = ["weights"]
# Of pictures what is said under the pointer, all over them: [row, column, number] per cell.
SHOWN = """(titles) => {
  const said = [...document.querySelectorAll(".st-key-pictures, .st-key-pictures *")]
    .map((node) => node.shadowRoot ?? node).map((root) => root.querySelector(".message"))
    .find(Boolean);
  const pictures = [...said.parentElement.querySelectorAll("canvas")];
  const titleOf = (canvas) => canvas.getAttribute("aria-label").match(/^(.*): \\d+ rows/)[1];
  if (pictures.some((canvas) => canvas.width <= 50)) throw Error("a picture is not painted");
  const read = pictures.filter((canvas) => titles.includes(titleOf(canvas)));
  return Object.fromEntries(read.map((canvas) => {
    const title = titleOf(canvas);
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const cells = new Map();
    for (let y = 1; y < height; y += 6)
      for (let x = 1; x < width; x += 2) {
        const at = { clientX: left + x, clientY: top + y };
        canvas.dispatchEvent(new PointerEvent("pointermove", at));
        if (!said.textContent) continue;
        if (!said.textContent.startsWith(`${title}: `)) throw Error(said.textContent);
        const [, row, column, number] =
          said.textContent.slice(title.length + 2).match(/^(.*), (.*): (?:<?\\d+% \\()?(.*?)\\)?$/);
        cells.set(`${row} ${column}`, [row, column, number]);
      }
    return [title, [...cells.values()]];
  }));
}"""


def shown(page, titles=READ):
    """The numbers of the pictures to be read, by title."""
    for canvas in page.locator(".st-key-pictures canvas").all():
        expect(canvas).to_have_attribute(
            "style", re.compile("width")
        )  # it is painted a frame later
    found = {}
    for title, cells in page.evaluate(SHOWN, titles).items():
        rows = list(dict.fromkeys(row for row, *_ in cells))
        numbers = [float(number.replace("masked", "nan")) for _, _, number in cells]
        assert cells and len(numbers) % len(rows) == 0
        found[title] = np.reshape(numbers, (len(rows), -1))
    return found


def test_what_is_under_the_pointer_is_said_all_over_the_pictures(mounted):
    weights = np.random.default_rng(0).dirichlet(np.ones(4), size=3).astype(np.float32)
    weights[1, 2] = np.nan
    named = Matrix("weights", weights, "query", "key", "ABC", "abcd", weights=True)
    plain = Matrix("q", -3 * weights, "token", "number", bands=2, follow=1)
    page = mounted(matrices, [named, plain], key="pictures", on_choose=None, fills=False).page
    for title, values in (("weights", weights), ("q", -3 * weights)):
        found = shown(page, [title])[title]
        assert np.allclose(found, values, atol=2e-6, equal_nan=True)
    said, canvas = page.locator(".message"), page.get_by_role("img", name="weights: 3 rows")
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] - 20, "y": box["height"] - 15})
    expect(said).to_contain_text("weights: “C”, “d”: ")
    assert canvas.bounding_box() == box  # nothing moves under the pointer
    place, frame = said.bounding_box(), page.locator(".frame").bounding_box()
    assert place["y"] + place["height"] <= frame["y"]
    assert place["x"] >= frame["x"] and place["width"] <= frame["width"]
    page.get_by_role("img", name="q: 3 rows").hover(position={"x": 60, "y": box["height"] - 15})
    expect(said).to_contain_text("q: token 3, number ")
    page.mouse.move(2, 800)
    expect(said).to_have_text("")


def test_hidden_pictures_wait_for_room_and_another_ink_is_drawn(mounted):
    values = np.ones((3, 4), np.float32)
    page = mounted(
        matrices, [Matrix("ones", values, "row", "column")], key="pictures", on_choose=None
    ).page
    canvas = page.get_by_role("img", name="ones")
    place = page.locator(".st-key-pictures")
    before = canvas.evaluate("(canvas) => canvas.toDataURL()")
    place.evaluate("(node) => (node.style.display = 'none')")
    mounted(
        matrices,
        [Matrix("ones", values * 2, "row", "column")],
        key="pictures",
        on_choose=None,
        fills=False,
    )
    place.evaluate("(node) => (node.style.display = '')")
    page.wait_for_function("(canvas) => canvas.width > 50", arg=canvas.element_handle())
    assert (shown(page, ["ones"])["ones"] == 2).all()
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "([canvas, before]) => canvas.toDataURL() !== before", arg=[canvas.element_handle(), before]
    )


def test_a_cell_or_the_label_of_a_row_chooses_and_the_pointer_says_where(mounted):
    """Where rows are followed; the label of a column never does."""
    values, ways = np.ones((3, 4), np.float32), {"chooses": "follow", "chooses_column": "to"}
    scores = Matrix("scores", values, "query", "key", "ABC", "abcd", follow=1, **ways)
    plain = Matrix("x", values, "row", "number", "ABC")
    page = mounted(matrices, [scores, plain], key="pictures", on_choose=None, fills=False).page
    cursor = "(canvas) => getComputedStyle(canvas).cursor"
    for title, over_row in (("scores", "pointer"), ("x", "auto")):
        canvas = page.get_by_role("img", name=f"{title}: 3 rows")
        box = canvas.bounding_box()
        label, column_label = {"x": 4, "y": box["height"] - 10}, {"x": 40, "y": 3}
        for place, shape in ((label, over_row), (column_label, "auto")):
            canvas.hover(position=place)
            assert canvas.evaluate(cursor) == shape
            canvas.click(position=place)
        canvas.click(position={"x": box["width"] - 20, "y": box["height"] - 10})
    chosen = [("chosen", {"follow": 2}), ("chosen", {"follow": 2, "to": 3})]
    assert mounted.sent("pictures") == chosen


WRITTEN = """() => {
  window.written = [];
  const write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
    written.push([text, this.textAlign, ...at]);
    return write.call(this, text, ...at);
  };
}"""


@pytest.fixture
def written(mounted):
    """What is drawn of matrices on their canvases: text, alignment, x and y."""

    def drawn(*shown):
        mounted.page.evaluate(WRITTEN)
        mounted(matrices, [*shown], key="pictures", on_choose=None, fills=False)
        mounted.page.wait_for_function("written.length > 0")
        return mounted.page.evaluate("written")

    return drawn


@pytest.mark.parametrize(("width", "numbers"), [(440, 14 * 12), (262, 0)])
def test_no_label_is_dropped_and_numbers_shrink(mounted, written, width, numbers):
    columns = [f"key{i}" for i in range(12)]
    mounted.page.evaluate("(width) => (document.body.style.width = `${width}px`)", width)
    named = Matrix("scores", np.ones((14, 12), np.float32), "query", "key", columns * 2, columns)
    texts = [text for text, *_ in written(named)]
    assert texts[-26:] == [*(columns * 2)[:14], *columns]
    assert [text in columns for text in texts[-26 - 14 * 12 : -26]].count(False) == numbers


def test_of_many_rows_the_one_that_is_followed_is_in_view_and_has_its_label(mounted, written):
    words = [f"word{i}" for i in range(55)]
    mounted.page.set_viewport_size({"width": 1280, "height": 720})
    many = Matrix("scores", np.ones((55, 55), np.float32), "query", "key", words, words,
                  follow=50, column=51)  # fmt: skip
    texts = [text for text, *_ in written(many)]
    rows = texts[: texts.index("word0", 1)]  # then the columns
    assert "word50" in rows and len(rows) < 40 and "word51" in texts
    expect(mounted.page.get_by_role("img", name="scores: 55 rows")).to_be_in_viewport(ratio=1)


def test_what_numbered_columns_count_stands_before_them(written):
    values, rows = np.ones((3, 4), np.float32), ["0 A", "1 B", "2 C"]
    numbered = Matrix("table", values, "position", "dimension", rows, numbers=False)
    named = Matrix("scores", values, "query", "key", "ABC", "abcd", numbers=False)
    at = {text: place for text, *place in written(numbered, named)}
    assert "key" not in at
    (_, right, height, room), (_, first, *_) = at["dimension"], at["1"]
    assert 40 < room == right < first and height == pytest.approx(at["1"][2])


# In the app


def test_every_step_is_drawn_by_keyboard_alone(visit, models):
    """Its numbers are asked in test_head_walkthrough.py; of one step they are read here."""
    visit.open(f"{LINK}&at=Input")
    trace = checkpoint.load(models / "uneven").trace(*TEXTS)
    for number, name in enumerate(STEPS, start=1):
        expect(visit.page.get_by_role("heading", name=f"{number}. {name}")).to_be_visible()
        visit.settle()
        expect(visit.page.locator(".st-key-pictures canvas").first).to_be_visible()
        if name == "Softmax":  # six decimals are said
            weights = shown(visit.page, ["weights"])["weights"]
            assert np.allclose(weights, trace.attention["cross"][2, 1], atol=2e-6)
        visit.page.keyboard.press("ArrowRight")
    expect(visit.page.get_by_role("heading", name=f"11. {STEPS[-1]}")).to_be_visible()
    visit.page.keyboard.press("ArrowLeft")
    expect(visit.page.get_by_role("heading", name=f"10. {STEPS[-2]}")).to_be_visible()


def test_a_step_is_linked_to_and_every_press_counts(visit):
    visit.open(LINK + "&at=Softmax")
    expect(visit.page.get_by_role("heading", name="6. Softmax")).to_be_visible()
    address = visit.page.url
    visit.page.keyboard.press("ArrowRight")
    expect(visit.page.get_by_role("heading", name="7. Values")).to_be_visible()
    expect(visit.page.locator(".stage .finding")).to_contain_text("adds up the values of all keys")
    visit.settle()
    assert "at=Values" in visit.page.url and address != visit.page.url
    for _ in range(4):
        visit.page.keyboard.press("ArrowRight")
        visit.page.wait_for_timeout(50)
    expect(visit.page.get_by_role("heading", name=f"11. {STEPS[-1]}")).to_be_visible()
    visit.settle()
    visit.page.get_by_role("radio", name="Scores").click()
    expect(visit.page.get_by_role("heading", name=f"3. {STEPS[2]}")).to_be_visible()
    visit.settle()
    for _ in range(2):  # the click left the keyboard on the choice of steps
        visit.page.keyboard.press("ArrowRight")
    expect(visit.page.get_by_role("heading", name=f"5. {STEPS[4]}")).to_be_visible()
    visit.settle()
    assert "at=Mask" in visit.page.url


def test_a_row_is_chosen_in_the_picture_and_stays(visit):
    """On other views and pages too, and beside labels that can be read."""
    visit.open(f"{LINK}&at=Scaling&follow=2+ein")
    canvas = visit.page.get_by_role("img", name="s ÷ √d_head: ")
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] - 30, "y": box["height"] - 12})  # the last row
    visit.settle()
    said = visit.page.locator(".st-key-page_body")
    expect(said).to_contain_text("“sieht” · ")
    for title in ("Query–key–value", "Heads"):
        visit.go(title).go("Inside a head")
        expect(said).to_contain_text("“sieht” · ")
