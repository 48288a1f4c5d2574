"""The page Alignment: lines between words, by mouse, keys and file."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from headlight.app.components.word_lines import word_lines
from headlight.app.theme import INKED
from headlight.model import load
from headlight.model.analysis.alignment import WordWeights, of_trace, pharaoh
from tests.browser.conftest import filled

pytestmark = pytest.mark.browser
SENTENCE = "A dog runs on the beach."
HERE = f"alignment?source={SENTENCE.replace(' ', '+')}"
NOTE = "Each target word with its best source word."
WORDS = WordWeights(
    ("A", "dog", "runs", "on", "the", "beach", "."),
    ("Ein", "Hund", "rennt", "am", "Strand", "."),
    np.random.default_rng(0).dirichlet(np.full(7, 0.3), size=6),
)


def show(mounted, words=WORDS, before=frozenset()):
    links = words.links()
    mounted(
        word_lines, words, ("Source", "Target"), (links, before or links), NOTE, INKED, on_pin=print
    )
    return mounted.page


def words_of(page, side):
    return page.locator(".row").nth(side).locator(".word")


def test_a_line_for_each_word_and_what_is_pointed_at_is_said(mounted):
    page = show(mounted)
    expect(page.locator(".lines .now")).to_have_count(len(WORDS.target))
    expect(page.locator(".lines .before")).to_have_count(0)
    assert words_of(page, 1).all_inner_texts() == list(WORDS.target)
    status = page.locator(".frame [role=status]")
    expect(status).to_have_text(NOTE)
    at = WORDS.target.index("Hund")
    order = np.argsort(-WORDS.weights[at])
    words_of(page, 1).nth(at).hover()
    said = ", ".join(f"{WORDS.source[i]} ({100 * WORDS.weights[at, i]:.0f}%)" 
                     for i in order[:3] if WORDS.weights[at, i] >= 0.005)  # fmt: skip
    expect(status).to_have_text(f"Hund: {said}")
    expect(page.locator(".lines .pointed")).to_have_count(1)
    start = float(page.locator(".lines .pointed").get_attribute("d").split()[1])
    word = words_of(page, 0).nth(int(order[0])).bounding_box()
    x = page.locator(".lines").bounding_box()["x"] + start
    assert x == pytest.approx(word["x"] + word["width"] / 2, abs=0.5)
    wanted = np.where(WORDS.weights[at] < 0.005, -1, 100 * WORDS.weights[at])
    assert np.abs(filled(words_of(page, 0)) - wanted).max() <= 1
    page.mouse.move(5, 600)
    expect(status).to_have_text(NOTE)


def test_a_word_that_is_clicked_stays_selected_until_it_is_let_go(mounted):
    page = show(mounted)
    status, pinned = page.locator(".frame [role=status]"), page.locator(".word.pinned")
    hund = words_of(page, 1).nth(WORDS.target.index("Hund"))
    for let_go in (hund.click, lambda: page.keyboard.press("Escape")):
        page.get_by_role("application").focus()
        hund.click()
        words_of(page, 0).first.hover()
        page.mouse.move(5, 600)
        expect(pinned).to_have_text("Hund")
        expect(status).to_have_text(re.compile("^Hund: .* Selected"))
        show(mounted)  # with the same words
        expect(pinned).to_have_text("Hund")
        page.get_by_role("application").focus()
        let_go()
        page.mouse.move(5, 600)
        expect(pinned).to_have_count(0)
        expect(status).to_have_text(NOTE)
    sent = [value["word"] for _, value in mounted.sent("word_lines")]
    assert sent == 2 * [[1, WORDS.target.index("Hund")], None]


def test_arrow_keys_point(mounted):
    page = show(mounted)
    page.get_by_role("application", name="Words and the lines").focus()
    status = page.locator(".frame [role=status]")
    for key, said in (
        ("ArrowRight", f"{WORDS.target[0]}:"),
        ("ArrowRight", f"{WORDS.target[1]}:"),
        ("ArrowUp", f"{WORDS.source[1]}: attended to most by"),
        ("ArrowLeft", f"{WORDS.source[0]}: attended to most by"),
        ("ArrowLeft", f"{WORDS.source[0]}: attended to most by"),  # there is none before the first
    ):
        page.keyboard.press(key)
        expect(status).to_contain_text(f"{said} ")
    page.keyboard.press("Escape")
    expect(status).to_have_text(NOTE)


def test_lines_of_before_are_dashed_where_they_differ(mounted):
    now = WORDS.links()
    gone = (next(i for i in range(7) if (i, 0) not in now), 0)
    page = show(mounted, before=frozenset({*now, gone}))
    expect(page.locator(".lines .before")).to_have_count(1)
    expect(page.locator(".lines .now")).to_have_count(len(WORDS.target))


def test_where_nothing_stands_below_the_words_end_with_the_window(mounted):
    """Also when what stands above them grows."""
    mounted(word_lines, WORDS, ("Keys", "Queries"), (WORDS.links(),) * 2, NOTE, INKED, tall=True)
    page = mounted.page
    page.set_viewport_size({"width": 1280, "height": 600})
    for height in (40, 160):
        page.evaluate("height => document.body.style.paddingTop = `${height}px`", height)
        page.wait_for_timeout(100)
        keys, queries = (words_of(page, side).first.bounding_box() for side in (0, 1))
        assert keys["y"] > height and 570 < queries["y"] + queries["height"] < 600


def test_long_sentences_stand_upright(mounted):
    long = WordWeights(8 * WORDS.source, 8 * WORDS.target, np.tile(WORDS.weights, (8, 8)))
    page = show(mounted, long)
    expect(page.locator(".sheet.upright")).to_be_visible()
    tops = [words_of(page, side).first.bounding_box() for side in (0, 1)]
    assert tops[0]["x"] < tops[1]["x"]
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_a_head_is_selected_the_file_holds_its_lines_and_changes_leave_them_dashed(visit):
    page, en_fr = visit.page, load("en-fr")
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    visit.open(HERE)
    words = en_fr.align(SENTENCE)
    assert words_of(page, 1).all_inner_texts() == list(words.target)
    expect(page.locator(".lines .now")).to_have_count(len(words.target))
    visit.choose("aligned_by", "Selected head")
    visit.choose("layer", "3")
    visit.choose("head", "1")
    expected = en_fr.alignment.of(of_trace(en_fr.trace(SENTENCE)), [(2, 0)])
    expect(page.locator(".frame [role=status]")).to_contain_text("layer 3 head 1")
    with page.expect_download() as download:
        page.get_by_role("button", name="Pharaoh").click()
    assert download.value.suggested_filename == "en-fr-alignment.txt"
    with open(download.value.path(), encoding="utf-8") as file:
        assert file.read() == pharaoh(expected.links()) + "\n"
    visit.open(f"{HERE}&changes=cross%3Dhide%3A1&aligned_by=Influence")
    expect(page.locator(".lines .now").first).to_be_attached()
    assert page.locator(".lines .before").count() > 0
    expect(page.locator(".frame [role=status]")).to_contain_text("Dashed:")
