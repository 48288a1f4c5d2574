"""The live page from file://, without a network: what a user does with it in Chromium, and that
Firefox computes the same; the numbers are in tests/javascript/test_live.py."""

import json
import re
from contextlib import ExitStack, contextmanager
from functools import cache

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from headlight.app.components.scripts import script
from headlight.app.live.build import page
from headlight.model.checkpoint import SHIPPED, load
from tests.browser.conftest import ARGUMENTS, executable
from tests.browser.firefox import launched
from tests.javascript.test_live import (
    CHECKPOINTS,
    check_tokens,
    compare,
    sentences,
    strings,
)

pytestmark = pytest.mark.browser
VIEWPORT = {"width": 1280, "height": 720}
HOSTILE = "</script><img src=x onerror=document.title='ran'><!-- <script>"


@pytest.fixture(scope="module")
def browser(chromium):
    """One that optimises scripts: here they compute."""
    browser = chromium.browser_type.launch(executable_path=executable(), args=ARGUMENTS)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The page of a checkpoint as a file."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def built(name):
        path = folder / f"{name}.html"
        path.write_text(page(name), encoding="utf-8")
        return path

    return built


class Tab:
    """A tab without a network. `requests` and `errors` hold what a page in it did unasked."""

    def __init__(self, context):
        self.page = context.new_page()
        self.requests, self.errors = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text))

    def open(self, path, fragment="", viewport=VIEWPORT, color_scheme="light"):
        self.page.set_viewport_size(viewport)
        self.page.emulate_media(color_scheme=color_scheme)
        self.page.goto(path.as_uri() + fragment)
        return self.answered()

    def answered(self):
        """The newest question has been answered in full."""
        expect(self.page.locator("html[data-idle]")).to_be_attached()
        return self

    def type(self, text):
        self.page.get_by_label("Text", exact=True).fill(text)
        self.page.keyboard.press("Enter")
        return self.answered()

    def text(self, id):
        return self.page.locator(f"#{id}").inner_text()

    def finding(self):
        return self.page.locator(".message").inner_text()

    def choose(self, label):
        self.page.get_by_text(label, exact=True).click()
        return self.answered()

    def grid(self):
        """The labels of each text, and the pixels of the first kind's tiles."""
        return self.page.evaluate(
            "[[...document.querySelectorAll('.text > div')].map((line) => "
            "[...line.querySelectorAll('span')].map((span) => span.textContent)), "
            "[...document.querySelectorAll('.canvases canvas:first-child')].map((c) => "
            "c.toDataURL())]"
        )

    def leave(self):
        """Make the tab like a new one."""
        self.page.goto("about:blank")
        errors, requests = self.errors.copy(), self.requests.copy()
        self.errors.clear()
        self.requests.clear()
        assert not errors
        assert not [url for url in requests if not url.startswith(("file:", "blob:"))]


@pytest.fixture(scope="module")
def new_tab(browser):
    """A tab, of those left by tests before where there is one: scripts that it has compiled are not
    compiled again, which takes three quarters of the time to open a page."""
    free = []

    @contextmanager
    def new_tab():
        tab = free.pop() if free else Tab(context)
        yield tab
        tab.leave()
        free.append(tab)

    with browser.new_context(offline=True) as context:
        yield new_tab


@pytest.fixture(name="opened")
def opened_in_a_tab(new_tab, file):
    with ExitStack() as tabs:

        def open_(name, fragment="", **options):
            path = file(name) if isinstance(name, str) else name
            return tabs.enter_context(new_tab()).open(path, fragment, **options)

        yield open_


# In Firefox


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    with launched(tmp_path_factory.mktemp("profile")) as firefox:
        yield firefox


ENGINE = (
    script("../../tests/javascript/live_engine.js").replace("export const ", "const ")
    + """
  const [data, weights] = ["data", "weights"].map((id) => document.getElementById(id).textContent);
  globalThis.live = engineOf(JSON.parse(data), weights);
"""
)
IDLE = """
  new Promise((idle) => {
    const look = () => (document.documentElement.dataset.idle ? idle() : setTimeout(look, 20));
    look();
  })
"""


@pytest.mark.long
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_firefox_computes_the_same(firefox, file, name):
    """Numbers, texts and tokens, by the bars for Chromium; a sentence is typed, a key switches a
    head off."""
    firefox.open(file(name).as_uri())
    firefox.evaluate(IDLE)
    firefox.evaluate(f"(() => {{ {ENGINE} }})()")
    ask = lambda what, **question: firefox.evaluate(f"live.{what}({json.dumps(question)})")  # noqa: E731
    compare(name, ask, count=12, beams=4, changed=2)
    check_tokens(name, ask, [*sentences(name, 40), *strings(500)])
    text = sentences(name, 2)[1]
    firefox.evaluate(
        f"(document.getElementById('source').value = {json.dumps(text)}, "
        "document.getElementById('source').focus())"
    )
    firefox.press("\ue007")  # Enter
    firefox.evaluate(IDLE)
    labels = "[...document.querySelectorAll('.text > div:first-child span')]"
    first = next(iter(load(name).trace(text).texts.values()))
    assert firefox.evaluate(f"{labels}.map((span) => span.textContent)") == list(first.tokens)
    said = lambda id: firefox.evaluate(f"document.getElementById('{id}').textContent")  # noqa: E731
    assert said("written")
    firefox.evaluate("document.querySelector('.stage').focus()")
    firefox.press("o")
    firefox.evaluate(IDLE)
    assert said("state").endswith(" off ×") and said("error") == ""
    assert firefox.errors == []


# The page


def test_what_is_done_by_mouse_and_keys_is_a_chip_and_undone(opened):
    tab = opened("copy", "#source=a b c")
    page, tiles = tab.page, tab.grid()[1]
    page.get_by_label("Pad to length").press("ArrowUp")
    assert tab.answered().text("state") == "Padded to 5 ×"
    page.get_by_label("Source padding mask").uncheck()
    assert "Source padding mask off ×" in tab.answered().text("state")
    page.locator(".text .source span", has_text="b").first.click()
    page.keyboard.press("h")
    assert "Cross “b” hidden ×" in tab.answered().text("state")
    changed = tab.grid()[1]
    for shown, same in (("Before", False), ("Difference", False), ("After", True)):
        tab.choose(shown)
        assert (tab.grid()[1] == changed) == same, shown
    while tab.text("state") != "As trained":
        page.keyboard.press("u")
        tab.answered()
    assert tab.grid()[1] == tiles
    page.keyboard.press("y")
    assert tab.answered().text("state") == "Padded to 5 ×"


def test_a_generation_is_continued_otherwise(opened):
    tab = opened("en-de", "#source=A man is sleeping.&view=generate")
    generation = tab.page.locator("#generation")
    generation.locator(".frame").press("ArrowRight")
    generation.get_by_title("Continue with").first.click()
    tab.answered()
    assert generation.locator(".written span").all_inner_texts()[1] != "Mann"
    assert "beginning=" in tab.page.url
    generation.locator(".strip").nth(4).click()
    assert "layer=2&head=1" in tab.page.url


def test_a_link_brings_everything_back(opened):
    tab = opened(
        "copy", "#source=a b c&causal=false&changes=cross.1.1=off&beam=5&pad_to=6&target=a"
    )
    again = opened("copy", "#" + tab.page.url.split("#")[1])
    for id in ("state", "written", "numbers"):
        assert again.text(id) == tab.text(id) != ""
    assert again.finding() == tab.finding() != ""
    assert tab.text("written") == "You typed: a" and "writes" not in tab.finding()
    assert again.grid() == tab.grid()
    assert again.page.url == tab.page.url


def test_the_newest_sentence_wins(opened):
    tab = opened("en-de")
    box = tab.page.get_by_label("Text", exact=True)
    for text in ("A man is sleeping.", "Two women are talking.", "The dog runs."):
        box.fill(text)
        box.press("Enter")
    tab.answered()
    checkpoint = load("en-de")
    target = checkpoint.translate("The dog runs.")
    assert tab.text("written") == f"Model en-de wrote: {checkpoint.tokenizer.decode(target.ids)}"
    assert tab.grid()[0][0] == ["The", "dog", "runs", ".", "</s>"]


def test_present_enlarges_and_survives_a_reload(opened):
    tab = opened("copy", "#source=a b c", viewport={"width": 1280, "height": 720})
    width = "document.querySelector('.cells canvas').clientWidth"
    size = "parseFloat(getComputedStyle(document.querySelector('.text > div')).fontSize)"
    small, narrow = tab.page.evaluate(size), tab.page.evaluate(width)
    tab.page.get_by_role("button", name="Present").click()
    assert tab.page.evaluate(size) > max(20, small) and tab.page.evaluate(width) > narrow
    tab.page.reload()
    tab.answered()
    assert tab.page.evaluate(size) > 20 and "present=true" in tab.page.url
    for id, key in (("panel", "p"), ("bar", "b")):
        for pressed in (key, "Escape"):
            expect(tab.page.locator(f"#{id}")).to_be_hidden()
            tab.page.keyboard.press(key)
            expect(tab.page.locator(f"#{id}")).to_be_visible()
            main = tab.page.locator("main").bounding_box()
            shown = tab.page.locator(f"#{id}").bounding_box()
            assert main["x"] + main["width"] <= shown["x"] or main["y"] >= shown["height"]
            tab.page.keyboard.press(pressed)
            expect(tab.page.locator(f"#{id}")).to_be_hidden()
    tab.page.locator(".source span").first.click()
    tab.page.keyboard.press("Escape")
    expect(tab.page.locator("#leave")).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(tab.page.locator("#panel")).to_be_visible()
    assert tab.page.evaluate(width) == narrow


def test_the_theme_is_that_of_the_system_until_it_is_chosen(opened):
    tab = opened("copy")
    colour = "getComputedStyle(document.documentElement).backgroundColor"
    light, dark = "rgb(255, 255, 255)", "rgb(23, 22, 20)"
    assert tab.page.evaluate(colour) == light
    tab.page.emulate_media(color_scheme="dark")
    assert tab.page.evaluate(colour) == dark
    tab.page.get_by_role("button", name="Light or dark").click()
    assert tab.page.evaluate(colour) == light


@pytest.mark.parametrize("fragment", ["", "#present=true"])
def test_it_opens_with_a_finding_and_nothing_cut(opened, fragment):
    """The marked row is a clear one, away from the diagonal. In Present nothing else names the
    head."""
    tab = opened("en-de", fragment)
    head = "Cross-attention, layer 1 head 2: " if fragment else ""
    assert re.match(head + r"gesehen attends most to see \((9\d|100)%\)", tab.finding())
    cut = """() => ["h1", "#source", "#strip", "#written", ".message"]
      .map((part) => document.querySelector(part)).filter((box) =>
        box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight).length === 0"""
    for width in (1280, 1920, 390):
        tab.page.set_viewport_size({"width": width, "height": 720})
        tab.page.wait_for_function(cut)


# Safety


def test_markup_is_text_everywhere(opened, tmp_path):
    folder = tmp_path / "copy"
    folder.mkdir()
    for source in (SHIPPED / "copy").iterdir():
        if source.is_file():
            (folder / source.name).write_bytes(source.read_bytes())
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["card"]["title"] = HOSTILE + "{{weights}}"
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "examples.txt").write_text(f"{HOSTILE}{{{{data}}}}\na b\n", encoding="utf-8")
    file = tmp_path / "page.html"
    file.write_text(page(folder), encoding="utf-8")
    tab = opened(file)
    assert tab.page.get_by_label("Text", exact=True).input_value() == f"{HOSTILE}{{{{data}}}}"
    assert tab.text("written") and tab.text("error") == ""
    name = HOSTILE.replace(" ", "%20").replace("#", "%23")
    tab.page.goto(f"{file.as_uri()}#source={name}&target={name}&changes={name}")
    tab.answered()
    assert HOSTILE[:9] in tab.text("error")
    for view, words in (("alignment", "#lines .row"), ("generate", "#generation .source")):
        tab.page.goto(f"{file.as_uri()}#source={name}&view={view}")
        expect(tab.page.locator(words).first).to_be_visible()
        assert "<" in tab.answered().page.locator(words).first.inner_text()
        assert tab.text("error") == ""
    assert tab.page.locator("img").count() == 0
    assert tab.page.title() == f"{HOSTILE}{{{{weights}}}} · Headlight"


def test_the_policy_allows_no_network_and_no_eval(opened, file):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', file("copy").read_text())[1]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "http" not in re.sub(r"sha256-\S+", "", policy)
    tab = opened("copy")
    outcome = tab.page.evaluate(
        """async () => {
          const run = new Promise((done) => setTimeout(() => done(window.ran ?? "blocked"), 200));
          const script = document.createElement("script");
          script.textContent = "window.ran = 'ran'";
          document.body.append(script);
          return [await run, await fetch("https://example.org").catch(() => "blocked")];
        }"""
    )
    assert outcome == ["blocked", "blocked"]
    tab.errors.clear()  # what the policy says about the two


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_accessible(opened, width, scheme):
    size = {"width": width, "height": 720}
    tab = opened("copy", "#source=a b c&changes=cross.1.1=off", viewport=size, color_scheme=scheme)
    for view in ("Attention", "Alignment", "Generate")[: 3 if scheme == "dark" else 1]:
        tab.choose(view)
        found = Axe().run(tab.page)
        assert found.violations_count == 0, found.generate_report()
        wide = tab.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width
