"""The grid as a file, and as frames in a notebook: no server anywhere."""

import re

import pytest
from playwright.sync_api import expect

from headlight.app.components.scripts import read
from headlight.app.export.notebook import show
from headlight.model import load
from tests.browser.conftest import Visit

pytestmark = pytest.mark.browser
GRID = "window.grid"
MADE = "const grid = new Grid(large);"  # in the script of the page
DARK, LIGHT = "rgb(23, 22, 20)", "rgb(255, 255, 255)"


@pytest.fixture(scope="module")
def trace():
    return load("en-de").trace("the dog <b>sees</b> the cat", "der Hund")


@pytest.fixture
def page(chromium):
    """With the theme of its system. Whatever it does wrong fails the test."""
    context = chromium.new_context(
        viewport={"width": 1280, "height": 900}, color_scheme="dark", offline=True
    )
    page = context.new_page()
    visit = Visit(page, "file:///")
    yield page
    assert visit.errors == []
    assert len(visit.requests) == 1  # the file itself
    context.close()


def opened(page, tmp_path, content: str):
    """With the grid of each page within reach."""
    assert MADE in content
    file = tmp_path / "page.html"
    file.write_text(content.replace(MADE, f"{MADE} {GRID} = grid;"), encoding="utf-8")
    page.goto(file.as_uri())
    return page


def cell(frame, kind, layer, head, row, column) -> tuple[float, float]:
    """Where on the canvas of its kind a cell is, all counted from 0."""
    place = f"""() => {{
      const section = {GRID}.drawn.find((s) => s.part.kind === "{kind}");
      const {{ x, y }} = {GRID}.corner(section, {layer} * section.part.heads + {head});
      return [x + section.width * ({column} + 0.5) / section.part.columns,
              y + section.height * ({row} + 0.5) / section.part.rows];
    }}"""
    return tuple(frame.evaluate(place))


def background(frame) -> str:
    return frame.evaluate("getComputedStyle(document.documentElement).backgroundColor")


def test_a_file_of_its_own_answers_the_pointer(page, tmp_path, trace):
    opened(page, tmp_path, show(trace).page)
    said = page.locator(".message")
    expect(said).to_have_text(re.compile("^Cross-attention, layer 1 head 1(:| is selected)"))
    expect(page.locator(".source span")).to_have_text(list(trace.src.tokens))
    for scheme, colour in (("light", LIGHT), ("dark", DARK)):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(
            "(colour) => getComputedStyle(document.documentElement).backgroundColor === colour",
            arg=colour,
        )
    canvas = page.locator(".section").nth(0).locator("canvas").last
    x, y = cell(page, "encoder", 2, 3, 1, 0)
    canvas.hover(position={"x": x, "y": y})
    weight = round(100 * trace.attention["encoder"][2, 3, 1, 0])
    expect(said).to_have_text(
        re.compile(
            rf"^Encoder self-attention, layer 3 head 4: dog puts {weight}% of its weight on the\.$"
        )
    )
    canvas.click(position={"x": x, "y": y})
    page.mouse.move(2, 2)
    expect(said).to_have_text(re.compile("^Encoder self-attention, layer 3 head 4 is selected"))
    page.locator(".target span").nth(1).hover()
    expect(said).to_have_text(
        re.compile("belongs to the target, which this attention does not read")
    )
    page.locator(".stage").press("ArrowUp")
    page.mouse.move(2, 2)
    expect(said).to_have_text(re.compile("^Encoder self-attention, layer 2 head 4 is selected"))


def test_grids_in_one_notebook_do_not_meet(page, tmp_path, trace):
    first, second = show(trace), show(trace, "encoder", 2, 2)
    notebook = "<style>body {{ color: {} }} .message, canvas {{ display: none }}</style>{}<p>{}"
    # The notebook's theme is its own.
    body = notebook.format("#111", first._repr_html_(), second._repr_html_())
    opened(page, tmp_path, "<!doctype html>" + body)
    frames = page.frames[1:]
    for frame in frames:
        frame.wait_for_function("performance.getEntriesByName('grid painted').length")
        assert background(frame) == LIGHT
        assert frame.evaluate("document.documentElement.scrollHeight <= window.innerHeight"), (
            "the frame is as high as what it holds"
        )
    x, y = cell(frames[0], "cross", 3, 3, 0, 0)
    frames[0].locator("canvas").last.click(position={"x": x, "y": y})
    focus = [frame.evaluate(f"{GRID}.look.focus") for frame in frames]
    assert focus == [
        {"kind": "cross", "layer": 3, "head": 3},
        {"kind": "encoder", "layer": 1, "head": 1},
    ]


@pytest.mark.parametrize("width", [1000, 500])
def test_a_head_that_is_asked_for_is_what_one_sees_first(page, tmp_path, trace, width):
    page.set_viewport_size({"width": width, "height": 900})
    frame = show(trace, "cross", 3, 3)._repr_html_()
    opened(page, tmp_path, f"<!doctype html><body style='margin: 0; color: #111'>{frame}")
    inside = page.frames[1]
    inside.wait_for_function("performance.getEntriesByName('grid painted').length")
    expect(inside.locator(".selected h3")).to_have_text("Cross-attention, layer 3, head 3")
    cells = inside.locator(".selected canvas").first.bounding_box()
    assert cells["y"] + cells["height"] <= 640
    assert cells["width"] * cells["height"] > 0.25 * min(width, 1000) * 400
    tiles = inside.locator(".section canvas").first.bounding_box()
    assert (tiles["x"] < cells["x"]) if width == 1000 else (tiles["y"] > cells["y"])
    if width == 1000:  # all of it in view, and it stays so
        page.wait_for_timeout(300)
        assert page.locator("iframe").bounding_box()["height"] <= 642


KERNEL = """
class Model {  // as anywidget gives it: what Python has, and who hears of it
  heard = {};
  saved = 0;
  constructor(traits) { this.traits = traits; }
  get(name) { return this.traits[name]; }
  set(name, value) { this.traits[name] = value; }
  save_changes() { this.saved++; }
  on(event, hear) { (this.heard[event] ??= new Set()).add(hear); }
  off(event, hear) { this.heard[event].delete(hear); }
  assign(name, value) {  // as from Python
    this.traits[name] = value;
    for (const hear of this.heard[`change:${name}`]) hear();
  }
}
"""
SHOWN = """(traits) => {
  window.model = new Model(traits);
  const el = document.createElement("div");
  document.body.append(el);
  window.end = widget.render({ model, el });
}"""


def test_a_widget_tells_python_and_hears_it(page, tmp_path, trace):
    """With an object in the place of the kernel's."""
    file = tmp_path / "page.html"
    script = read("grid_widget/index.js").replace("export default", "window.widget =")
    file.write_text(f"<!doctype html><body><script>{KERNEL}{script}</script>", "utf-8")
    page.goto(file.as_uri())
    traits = {"page": show(trace, "cross", 2, 1).page, "title": "Heads", "height": 640}
    traits |= {"head": ["cross", 3, 3], "cell": [2, 1]}  # chosen before it was shown
    page.evaluate(SHOWN, traits)
    frame = page.locator("iframe").element_handle().content_frame()
    frame.wait_for_function("performance.getEntriesByName('grid painted').length")
    frame.evaluate(f"{GRID} = window.frameElement.grid")
    heading, told = frame.locator(".selected h3"), "() => [model.traits.head, model.traits.cell]"
    expect(heading).to_have_text("Cross-attention, layer 3, head 3")
    assert frame.evaluate(f"{GRID}.pinnedCell()") == {"query": 1, "key": 0}

    x, y = cell(frame, "encoder", 1, 2, 0, 0)
    frame.locator(".section").nth(0).locator("canvas").last.click(position={"x": x, "y": y})
    page.wait_for_function("model.traits.head[0] === 'encoder'")
    head, pinned = page.evaluate(told)
    assert head == ["encoder", 2, 3] and pinned[0] in (0, 2)  # a row of the text that it reads
    saved = page.evaluate("model.saved")
    assert saved >= 1

    page.evaluate(
        "() => { model.assign('head', ['decoder', 3, 4]); model.assign('cell', [3, 2]); }"
    )
    expect(heading).to_have_text("Decoder self-attention, layer 3, head 4")
    assert frame.evaluate(f"{GRID}.pinnedCell()") == {"query": 2, "key": 1}
    page.wait_for_timeout(50)
    assert page.evaluate(told) == [["decoder", 3, 4], [3, 2]]
    page.evaluate("() => model.assign('cell', [2, 0])")
    assert frame.evaluate(f"{GRID}.pinnedCell()") == {"query": 1, "key": -1}
    page.evaluate("() => model.assign('cell', [0, 0])")
    assert frame.evaluate(f"{GRID}.pinnedCell().query") == -1

    box = frame.locator(".selected canvas").last.bounding_box()
    frame.locator(".selected canvas").last.click(
        position={"x": box["width"] - 8, "y": box["height"] - 8}
    )
    size = len(trace.tgt.tokens)
    page.wait_for_function(f"String(model.traits.cell) === '{size},{size}'")
    page.evaluate("window.end()")
    assert page.evaluate("Object.values(model.heard).every(({ size }) => size === 0)")


def test_a_frame_that_is_opened_later_is_drawn_then(page, tmp_path, trace):
    frame = show(trace)._repr_html_()
    opened(page, tmp_path, f"<details><summary>more</summary>{frame}</details>")
    page.locator("summary").click()
    inside = page.frame_locator("iframe")
    expect(inside.locator(".source span")).to_have_text(list(trace.src.tokens))
    width = inside.locator("canvas").first.evaluate("(canvas) => canvas.clientWidth")
    assert width > 300
