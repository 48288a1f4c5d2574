"""The stage as a file, and as frames in a notebook: no server anywhere."""

import html
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from headlight.app.components.scripts import read
from headlight.app.export.notebook import show
from headlight.app.theme import PAPER
from headlight.model import load
from headlight.model.rounding import percent
from tests.browser.conftest import Visit

pytestmark = pytest.mark.browser
DRAWN = "() => performance.getEntriesByName('stage painted').length"
TARGET = "der Hund <i>"
BACKGROUND = "() => getComputedStyle(document.querySelector('.stage')).backgroundColor"


@pytest.fixture(scope="module")
def model():
    return load("en-de")


@pytest.fixture(scope="module")
def trace(model):
    return model.trace("the dog <b>sees</b> the cat", TARGET)


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
    file = tmp_path / "page.html"
    file.write_text(content, encoding="utf-8")
    page.goto(file.as_uri())
    return page


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"


def depth(place):
    return place.locator(".rail [aria-current]")


def test_a_file_of_its_own_has_every_depth_that_it_has_numbers_for(page, tmp_path, trace):
    opened(page, tmp_path, show(trace, "encoder", 3, 4).page)
    expect(page.locator(".rail button").first).to_have_text("Heads")
    expect(depth(page)).to_have_text("encoder 3.4")
    texts = page.locator(".words .side:not(.written)")
    typed = [" ".join(text.tokens[:2]) for text in (trace.src, trace.tgt)]
    expect(texts.first).to_contain_text(typed[0], use_inner_text=True)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(50)
        assert page.evaluate(BACKGROUND) == rgb(PAPER[scheme])
    page.wait_for_timeout(300)  # words change their colour by and by
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.locator(".words").get_by_role("button", name="dog").click()
    row = trace.attention["encoder"][2, 3, 1]
    expect(page.locator(".finding")).to_contain_text(f"({percent(row.max())})")
    q, k = trace.query["encoder"][2, 3], trace.key["encoder"][2, 3]
    page.keyboard.press("4")
    product = f"{(q[1] @ k.T).max():.1f}".replace("-", "−")
    expect(page.locator(".finding")).to_have_text(re.compile(rf"best: q · k is {product}\.$"))
    page.keyboard.press("5")
    own = f"{q[1] @ k[row.argmax()]:.1f}".replace("-", "−")
    expect(page.locator(".finding")).to_contain_text(f" is {own}, a sum of 32 products")
    expect(page.locator(".views button")).to_have_text(["In order", "Largest first"])
    for key in ("y", "o", "h", "t", "b", " "):  # what a file cannot do is nothing
        page.keyboard.press(key)
    expect(page.locator(".finding")).to_contain_text(f" is {own}, a sum of 32 products")
    page.keyboard.press("1")
    expect(depth(page)).to_have_text("Heads")
    page.keyboard.press("Escape")
    expect(depth(page)).to_have_text("Heads")
    for gone in (".quiet", ".pencil", ".model", ".player", ".views button"):
        expect(page.locator(gone).filter(visible=True)).to_have_count(0)


def test_what_was_before_a_change_is_a_slide_away(page, tmp_path, model, trace):
    line = "cross.2.3=temperature:9"
    after = model.trace("the dog <b>sees</b> the cat", TARGET, changes=line)
    opened(page, tmp_path, show(after, "cross", 2, 3, minus=trace).page)
    said = re.compile(r"With cross\.2\.3=temperature:9\.0\..*cross 2\.3 changes most")
    expect(page.locator(".finding")).to_have_text(said)
    page.locator(".words").get_by_role("button", name="dog").click()
    for key, one in (("0", trace), ("1", after)):
        page.get_by_label("Before to after").fill(key)
        row = page.locator(".rail button").nth(2).inner_text()
        at = [*(after.row_words("cross", 1, 2))].index(row)
        share = percent(one.attention["cross"][1, 2, at].max())
        expect(page.locator(".finding")).to_contain_text(f"({share})")


def test_pictures_in_one_notebook_do_not_meet(page, tmp_path, trace):
    first, second = show(trace), show(trace, "encoder", 2, 2)
    notebook = "<style>body {{ color: {} }} .finding, canvas {{ display: none }}</style>{}<p>{}"
    # The notebook's theme is its own.
    body = notebook.format("#111", first._repr_html_(), second._repr_html_())
    opened(page, tmp_path, "<!doctype html>" + body)
    frames = page.frames[1:]
    for frame in frames:
        frame.wait_for_function(DRAWN)
        assert frame.evaluate(BACKGROUND) == rgb(PAPER["light"])
    frames[0].locator("canvas").click(position={"x": 80, "y": 90})
    for frame, name in zip(frames, ("encoder 1.1", "encoder 2.2"), strict=True):
        expect(depth(frame)).to_have_text(name)


def test_a_sandbox_without_storage_shows_it(page, tmp_path, trace):
    frame = f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(show(trace).page)}"></iframe>'
    opened(page, tmp_path, f"<!doctype html>{frame}")
    frame = page.frame_locator("iframe")
    expect(depth(frame)).to_have_text("Heads")
    frame.locator("canvas").press("Enter")
    expect(depth(frame)).to_have_text("cross 1.1")


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
    script = read("stage_page/widget.js").replace("export default", "window.widget =")
    file.write_text(f"<!doctype html><body><script>{KERNEL}{script}</script>", "utf-8")
    page.goto(file.as_uri())
    traits = {"page": show(trace, "cross", 2, 1).page, "title": "Heads", "height": 640}
    traits |= {"head": ["cross", 3, 3], "cell": [2, 1]}  # chosen before it was shown
    page.evaluate(SHOWN, traits)
    page.set_viewport_size({"width": 1280, "height": 1400})
    page.evaluate("window.other = window.model")  # and another one, which hears nothing of it
    page.evaluate(SHOWN, traits)
    frame = page.locator("iframe").last.element_handle().content_frame()
    frame.wait_for_function(DRAWN)
    at = """() => {
      const { state } = frameElement.stage;
      return [state.name(), state.row(), state.key];
    }"""
    told = "() => [model.traits.head, model.traits.cell]"
    expect(depth(frame)).to_have_text("cross 3.3")
    assert frame.evaluate(at) == ["cross 3.3", 1, 0]
    page.wait_for_timeout(200)
    assert page.evaluate("model.saved") == 0

    frame.locator("canvas").press("2")
    frame.locator("canvas").press("ArrowUp")
    page.wait_for_function("() => model.traits.head[1] === 2")
    assert page.evaluate(told)[0] == ["cross", 2, 3]
    assert page.evaluate("model.saved") == 1

    page.evaluate(
        "() => { model.assign('head', ['decoder', 3, 4]); model.assign('cell', [3, 2]); }"
    )
    assert frame.evaluate(at) == ["decoder 3.4", 2, 1]
    expect(depth(frame)).to_have_text("Heads")  # where one was
    page.wait_for_timeout(50)
    assert page.evaluate(told) == [["decoder", 3, 4], [3, 2]]
    page.evaluate("() => model.assign('cell', [2, 0])")
    assert frame.evaluate(at)[1:] == [1, -1]
    page.evaluate("() => model.assign('cell', [0, 0])")
    assert frame.evaluate("() => frameElement.stage.state.selection().query") == -1
    for head in (["cross", 1, 1], ["decoder", 3, 4], ["cross", 1, 1]):  # the same again is heard
        page.evaluate("(head) => model.assign('head', head)", head)
        assert frame.evaluate(at)[0] == f"{head[0]} {head[1]}.{head[2]}"
        frame.locator("canvas").press("ArrowDown")
        page.wait_for_function("(layer) => model.traits.head[1] === layer", arg=head[1] + 1)

    frame.locator("canvas").press("3")
    expect(depth(frame)).to_have_text("cross 2.1")
    box = frame.locator("canvas").bounding_box()
    frame.locator("canvas").click(position={"x": box["width"] - 20, "y": box["height"] - 20})
    size = [len(trace.tgt.tokens), len(trace.src.tokens)]
    page.wait_for_function(
        "(size) => String(model.traits.cell) === size", arg=",".join(map(str, size))
    )
    kept = page.evaluate("[other.saved, other.traits.head, other.traits.cell]")
    assert kept == [0, traits["head"], traits["cell"]]
    page.evaluate("window.end()")
    assert page.evaluate("Object.values(model.heard).every(({ size }) => size === 0)")


def test_a_frame_that_is_opened_later_is_drawn_then(page, tmp_path, trace):
    frame = show(trace)._repr_html_()
    opened(page, tmp_path, f"<details><summary>more</summary>{frame}</details>")
    page.locator("summary").click()
    inside = page.frame_locator("iframe")
    expect(inside.locator(".finding")).to_contain_text("48 heads in 4 layers.")
    width = inside.locator("canvas").evaluate("(canvas) => canvas.clientWidth")
    assert width > 300
