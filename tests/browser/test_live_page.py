"""The live page from file://, without a network: what a user does with it in Chromium, and that
Firefox computes the same; the numbers are in tests/javascript/test_live.py."""

import json
import re
import shutil
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
        self.page.get_by_role("button", name="Type another sentence").click()
        self.page.get_by_role("textbox", name="Sentence").fill(text)
        self.page.keyboard.press("Enter")
        return self.answered()

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
            self.page.wait_for_timeout(700)  # a depth is a way of 620 ms
        return self.answered()

    def more(self):
        self.page.get_by_role("button", name="More", exact=True).click()
        return self.page.locator("#more")

    @property
    def finding(self):
        return self.page.locator(".finding")

    def done(self):
        """What is changed, as it stands before the finding."""
        return [text.removesuffix(" ×") for text in self.page.locator(".done").all_inner_texts()]

    def words(self):
        return [text.strip() for text in self.page.locator(".side:not(.written)").all_inner_texts()]

    def error(self):
        return self.page.locator("#error").inner_text()

    def pixels(self):
        """Of the picture, at rest."""
        self.page.wait_for_timeout(700)
        return self.page.evaluate("document.querySelector('canvas').toDataURL()")

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
        "(document.querySelector('.pencil').click(), "
        f"document.querySelector('.type').value = {json.dumps(text)})"
    )
    firefox.press("\ue007")  # Enter
    firefox.evaluate(IDLE)
    said = lambda part: firefox.evaluate(f"document.querySelector('{part}').textContent")  # noqa: E731
    first = next(iter(load(name).trace(text).texts.values()))
    words = [token for token, role in zip(first.tokens, first.roles, strict=True) if not role]
    shown = "[...document.querySelector('.side').querySelectorAll('button:not([hidden])')]"
    assert firefox.evaluate(f"{shown}.map((word) => word.textContent)") == words
    firefox.evaluate("document.querySelector('canvas').focus()")
    firefox.press("o")
    firefox.evaluate(IDLE)
    assert said(".done").endswith(" off ×") and said("#error") == ""
    assert firefox.errors == []


# The page


def test_acts_stand_in_the_sentence_and_are_undone_there_or_by_back(opened):
    tab = opened("copy", "#source=a b c&cell=cross.2.1")
    page, plain, off = tab.page, tab.pixels(), "Cross 2.1 off"

    def expect_done(*done):
        tab.answered()
        expect(page.locator(".done")).to_have_text([f"{each} ×" for each in done])

    expect_done()
    tab.press("o")
    expect_done(off)
    assert "changes=cross.2.1%3Doff" in page.url and tab.pixels() != plain
    expect(page.get_by_label("Before to after")).to_be_visible()
    page.locator(".side:not(.written)").first.get_by_text("b", exact=True).click()
    tab.press("h")
    expect_done(off, "“b” hidden")
    page.go_back()
    expect_done(off)
    page.go_forward()
    expect_done(off, "“b” hidden")
    page.get_by_role("button", name=f"Undo: {off}").click()
    expect_done("“b” hidden")
    page.get_by_role("button", name="Undo: “b” hidden").click()
    expect_done()


def test_every_depth_is_computed_here_and_what_is_not_is_said(opened):
    """The numbers are in tests/javascript/test_live.py."""
    tab = opened("copy", "#source=a b c&cell=cross.2.1.2")
    button = lambda name: lambda: tab.page.get_by_role("button", name=name).click()  # noqa: E731
    for act, said in (
        ("Enter", "q · k is"),
        ("Enter", "a sum of"),
        ("y", "not known here"),
        ("1", "attend"),
        (button("After each layer"), "If it stopped"),
        (button("Needs"), "needs"),
        (button("Positions"), "Each place adds"),
        ("2", "attend"),
        (button("By effect"), "cross 2.1"),
        (button("By habit"), "not known here"),
    ):
        tab.press(act) if isinstance(act, str) else act()
        expect(tab.finding).to_contain_text(said)
    tab.press("3")
    tab.page.locator(".tool").hover()
    tab.page.wait_for_timeout(1000)
    tab.page.locator(".tool").focus()
    expect(tab.finding).to_contain_text("translation stays the same")


def test_what_else_can_be_chosen_is_under_more(opened):
    tab = opened("copy", "#source=a b c")
    page, more = tab.page, tab.more()
    more.get_by_label("Decoding").select_option("5")
    assert "beam=5" in tab.answered().page.url
    more.get_by_label("Pad to length").press("ArrowUp")
    tab.answered()
    expect(page.locator(".done")).to_have_text(["Padded to 5 ×"])
    more.get_by_label("Source padding mask").uncheck()
    tab.answered()
    more.get_by_label("Your target").fill("a")
    page.keyboard.press("Enter")
    tab.answered()
    # Two acts are named, the others counted.
    expect(page.locator(".done").last).to_have_text("and 1 more")
    assert tab.words()[1] == "a"
    more.get_by_label("Changes to the running model").fill("cross.9=off")
    page.keyboard.press("Enter")
    assert tab.answered().error().endswith("has no layer 9.")
    more.get_by_role("button", name="Clear all changes").click()
    assert tab.answered().error() == "" and tab.words() == ["a b c", "a b c"]
    more.get_by_role("button", name="Close").click()
    expect(more).to_be_hidden()
    expect(page.get_by_role("link", name="Learn")).to_be_hidden()
    of_a_decoder = opened("induction").more()  # which writes no target
    expect(of_a_decoder.get_by_label("Pad to length")).to_be_visible()
    expect(of_a_decoder.locator("#target, #decoding").filter(visible=True)).to_have_count(0)


def test_what_cannot_be_read_or_done_is_said_and_nothing_is_lost(opened):
    tab = opened("copy", "#source=a b c&depth=head&cell=decoder.1.1.1.1")
    tab.page.locator("canvas").focus()
    tab.press("-")  # the only key of its row
    assert "nothing to rescale" in tab.error() and tab.done() == []
    expect(tab.finding).to_contain_text("decoder 1.1")
    long = "a " * 1200
    tab.type(long)
    assert "this model reads at most" in tab.error()
    box = tab.page.get_by_role("textbox", name="Sentence")
    assert box.input_value().strip() == long.strip()
    box.fill("b a")
    box.press("Enter")
    assert tab.answered().error() == "" and tab.words() == ["b a", "b a"]


def test_a_link_brings_everything_back(opened):
    settings = "source=a b c&causal=false&changes=cross.1.1=off&beam=5&pad_to=6&target=a"
    tab = opened("copy", f"#{settings}&depth=row&cell=decoder.1.2.2.1&stop=weights")
    again = opened("copy", "#" + tab.page.url.split("#")[1])
    expect(again.finding).to_have_text(tab.finding.inner_text())
    assert again.words() == tab.words() and again.pixels() == tab.pixels()
    assert again.page.url == tab.page.url and "cell=decoder.1.2.2.1" in tab.page.url
    older = opened("copy", "#source=a b c&kind=encoder&layer=2&head=1&view=attention")
    expect(older.finding).to_contain_text("encoder 2.1")


def test_the_newest_sentence_wins(opened):
    tab = opened("en-de")
    hash_ = "(text) => (location.hash = `source=${encodeURIComponent(text)}`)"
    for text in ("A man is sleeping.", "Two women are talking.", "The dog runs."):
        tab.page.evaluate(hash_, text)
    tab.answered()
    checkpoint = load("en-de")
    written = checkpoint.tokenizer.decode(checkpoint.translate("The dog runs.").ids)
    assert tab.words() == ["The dog runs.", written]


def test_present_outlives_a_reload_and_the_theme_is_the_system_s_until_it_is_chosen(opened):
    tab = opened("copy", "#source=a b c")
    size = "parseFloat(getComputedStyle(document.querySelector('.words')).fontSize)"
    colour = "getComputedStyle(document.querySelector('.stage')).backgroundColor"
    small, light, dark = tab.page.evaluate(size), "rgb(252, 251, 248)", "rgb(18, 20, 23)"
    tab.page.get_by_role("button", name="Present").click()
    for _ in range(2):
        assert tab.page.evaluate(size) > small and "present=true" in tab.page.url
        tab.page.reload()
        tab.answered()
    tab.page.get_by_role("button", name="Leave").click()
    assert tab.page.evaluate(size) == small
    assert tab.page.evaluate(colour) == light
    tab.page.emulate_media(color_scheme="dark")
    assert tab.page.evaluate(colour) == dark
    tab.more().get_by_role("button", name="Light or dark").click()
    assert tab.page.evaluate(colour) == light


@pytest.mark.parametrize("fragment", ["", "#present=true"])
def test_it_opens_with_a_finding_and_nothing_cut(opened, fragment):
    tab = opened("en-de", fragment)
    expect(tab.finding).to_contain_text(re.compile(r"cross 1\.2 attends most to \S+ \(\d+%\)"))
    cut = """() => [".words", ".line", ".finding", ".top"]
      .map((part) => document.querySelector(part)).filter((box) =>
        box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight).length === 0"""
    for width in (1280, 1920, 390):
        tab.page.set_viewport_size({"width": width, "height": 720})
        tab.page.wait_for_function(cut)


# Safety


def test_markup_is_text_everywhere(opened, tmp_path):
    folder, file = shutil.copytree(SHIPPED / "copy", tmp_path / "copy"), tmp_path / "page.html"
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["card"]["title"] = HOSTILE + "{{weights}}"
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "examples.txt").write_text(f"{HOSTILE}{{{{data}}}}\na b\n", encoding="utf-8")
    file.write_text(page(folder), encoding="utf-8")
    tab = opened(file)
    tab.page.get_by_role("button", name="Type another sentence").click()
    box = tab.page.get_by_role("textbox", name="Sentence")
    assert box.input_value() == f"{HOSTILE}{{{{data}}}}"
    assert tab.error() == "" and HOSTILE in tab.more().inner_text()
    name = HOSTILE.replace(" ", "%20").replace("#", "%23")
    tab.page.goto(f"{file.as_uri()}#source={name}&target={name}&changes={name}")
    assert HOSTILE[:9] in tab.answered().error()
    tab.page.goto(f"{file.as_uri()}#source={name}&target={name}&cell={name}&depth={name}")
    read = "".join(tab.answered().words()).replace("·", "")  # tokens that go on
    assert HOSTILE in read.replace("␣", "") and tab.error() == ""
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
    for shows in (lambda: None, tab.more):
        shows()
        found = Axe().run(tab.page)
        assert found.violations_count == 0, found.generate_report()
        wide = tab.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width
