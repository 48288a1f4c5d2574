"""A browser that translates the page: it puts an element with other words in the place of every
text that it may change, also of later ones. No text stays that is no longer true, and the words of
the model are never touched."""

import re

import pytest
from playwright.sync_api import expect

from headlight.app.export.notebook import show
from headlight.app.live.build import page as live_page
from headlight.app.state.pages import PAGES
from headlight.model import load
from tests.browser.conftest import BEGUN

pytestmark = pytest.mark.browser
# The texts that it has translated are in `window.seen`; on the page each begins with a sign.
TRANSLATE = r"""
  window.seen = [];
  const keeps = ({ parentElement: parent }) =>
    !parent?.translate || parent.closest(".notranslate, script, style, textarea, code, font");
  const wrap = (node) => {
    if (!node.isConnected || !/\p{L}/u.test(node.data) || keeps(node)) return;
    window.seen.push(node.data);
    const [outer, inner] = [0, 0].map(() => document.createElement("font"));
    inner.textContent = "¿" + node.data;
    outer.append(inner);
    node.replaceWith(outer);
  };
  const all = (root) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), found = [];
    while (walker.nextNode()) found.push(walker.currentNode);
    found.forEach(wrap);
  };
  const start = () => {
    all(document.body);
    new MutationObserver((records) => records.forEach(({ addedNodes }) =>
      addedNodes.forEach((node) => [() => {}, all, , wrap][node.nodeType]?.(node))
    )).observe(document.body, { childList: true, subtree: true });
  };
  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start);
"""
SENTENCES = "Two dogs run on the beach.", "A woman sings.", "The children read a small red book."
WORDS = re.compile(  # of these sentences and of what the models write
    r"\b(dogs|beach|sings|children|chiens|plage|femme|chante|enfants|livre|hunde|strand|frau|"
    r"singt|kinder|buch)\b",
    re.IGNORECASE,
)


def lines(page) -> list[str]:
    text = page.inner_text("body").replace("¿", "")
    return [line.strip() for line in text.splitlines() if line.strip()]


def seen(page) -> list[str]:
    return page.evaluate("window.seen")


@pytest.mark.parametrize(
    "titles",
    [["BertViz"], pytest.param([page.title for page in PAGES.values()], marks=pytest.mark.long)],
)
def test_the_app(visit, titles):
    visit.open("bertviz?model=en-fr")
    visit.page.evaluate(f"() => {{ {TRANSLATE} }}")
    translated = 0
    for title in titles:
        if title != "BertViz":
            visit.go(title)
        for sentence in SENTENCES[:: 1 if len(titles) > 2 else 2]:
            if visit.page.locator(".pencil").is_visible():
                visit.type(sentence)
        here = lines(visit.page)
        words = seen(visit.page)
        assert not [text for text in words if WORDS.search(text)], title
        translated += len(words)
        visit.page.reload()
        visit.page.wait_for_selector(BEGUN, state="attached")
        visit.idle()
        assert here == lines(visit.page), title
        visit.page.evaluate(f"() => {{ {TRANSLATE} }}")
    assert translated, "explanations may be translated"
    assert not visit.errors


@pytest.mark.parametrize("name", ["en-de"])
def test_the_live_page(chromium, tmp_path, name):
    file = tmp_path / "page.html"
    file.write_text(live_page(name), encoding="utf-8")
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.goto(file.as_uri())
    expect(page.locator("html[data-idle]")).to_be_attached()
    page.evaluate(f"() => {{ {TRANSLATE} }}")
    for sentence in SENTENCES:
        page.get_by_role("button", name="Type another sentence").click()
        box = page.get_by_role("textbox", name="Sentence")
        box.fill(sentence)
        box.press("Enter")
        written = load(name).decode(load(name).translate(sentence))
        expect(page.locator(".side:not(.written)").last).to_have_text(written, use_inner_text=True)
    assert [text for text in seen(page) if WORDS.search(text)] == []
    context.close()


def test_a_notebook(chromium, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(show(load("en-de").trace(SENTENCES[0])).page, encoding="utf-8")
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("canvas")
    page.evaluate(f"() => {{ {TRANSLATE} }}")
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(300)
    assert not seen(page)
    context.close()
