"""The page Alignment: lines between words, by mouse, keys and file."""

import pytest
from playwright.sync_api import expect

from model import load
from model.analysis.alignment import of_trace, pharaoh

pytestmark = pytest.mark.browser
SENTENCE = "A dog runs on the beach."
HERE = f"alignment?source={SENTENCE.replace(' ', '+')}"


@pytest.fixture
def lines(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    return visit.open(HERE)


def test_a_line_for_each_word_and_what_is_pointed_at_is_said(lines):
    page, words = lines.page, load("en-fr").align(SENTENCE)
    expect(page.locator(".lines .now")).to_have_count(len(words.target))
    shown = page.locator(".row").nth(1).locator(".word")
    assert shown.all_inner_texts() == list(words.target)
    at = words.target.index("chien")
    best = int(words.weights[at].argmax())
    shown.nth(at).hover()
    said = f"chien: {words.source[best]} {100 * words.weights[at, best]:.0f} %"
    expect(page.locator(".frame [role=status]")).to_contain_text(said)
    expect(page.locator(".lines .pointed")).to_have_count(1)
    start = float(page.locator(".lines .pointed").get_attribute("d").split()[1])
    word = page.locator(".row").nth(0).locator(".word").nth(best).bounding_box()
    x = page.locator(".lines").bounding_box()["x"] + start
    assert x == pytest.approx(word["x"] + word["width"] / 2, abs=0.5)


def test_arrow_keys_point(lines):
    page, words = lines.page, load("en-fr").align(SENTENCE)
    page.get_by_role("application", name="Words and what they go with").focus()
    status = page.locator(".frame [role=status]")
    for key, said in (
        ("ArrowRight", words.target[0]),
        ("ArrowRight", words.target[1]),
        ("ArrowUp", words.source[1]),
        ("ArrowLeft", words.source[0]),
    ):
        page.keyboard.press(key)
        expect(status).to_contain_text(f"{said}: ")
    page.keyboard.press("Escape")
    expect(status).to_contain_text("Each target word with")


def test_a_row_of_the_table_selects_its_head_and_the_file_holds_its_lines(lines):
    page, en_fr = lines.page, load("en-fr")
    lines.choose("aligned_by", "Selected head")
    lines.choose("layer", "3")
    lines.choose("head", "1")
    expected = en_fr.alignment.of(of_trace(en_fr.trace(SENTENCE)), [(2, 0)])
    expect(page.locator(".frame [role=status]")).to_contain_text("layer 3 head 1")
    with page.expect_download() as download:
        page.get_by_role("button", name="Pharaoh").click()
    assert download.value.suggested_filename == "en-fr-alignment.txt"
    with open(download.value.path(), encoding="utf-8") as file:
        assert file.read() == pharaoh(expected.links()) + "\n"


def test_changes_leave_the_lines_of_before_dashed(visit):
    visit.open(f"{HERE}&changes=cross%3Dhide%3A2&aligned_by=Influence")
    expect(visit.page.locator(".lines .now").first).to_be_attached()
    assert visit.page.locator(".lines .before").count() > 0
    expect(visit.page.locator(".frame [role=status]")).to_contain_text("Dashed:")
