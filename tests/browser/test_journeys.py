"""What a user would miss first, once each in a real Chromium; all else is in the other files. The
fixture `visit` asks after each that nothing failed on the page and nobody but the app was asked."""

import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
from playwright.sync_api import expect

from headlight.app.components.packing import weight_bytes
from headlight.app.live.build import page as live_page
from headlight.model import Masks, load
from tests.browser.conftest import alone
from tests.browser.test_export import settings_in, take
from tests.browser.test_learn import FINDING, QUESTION, ROW, TEXT, press, step
from tests.browser.test_walk import HAS_SCHEME

CELLS = """(kind) => [...headlightStage.stage.state.part(kind).all]"""


def expect_weights(page, attention) -> None:
    """What the browser has of every head is what the model gives."""
    for kind, weights in attention.items():
        expected = weight_bytes(weights).ravel()
        seen = page.evaluate(CELLS, kind)
        assert len(seen) == expected.size
        assert np.abs(np.array(seen) - expected).max() <= 1, kind  # sums in another order


def test_a_sentence_is_read_changed_and_linked_to(visit):
    page, en_fr = visit.open().page, load("en-fr")
    finding, words = page.locator(FINDING), page.locator(".st-key-stage_place .words .w")
    visit.type(text := "Two dogs run.")
    trace = en_fr.trace(text)
    expect_weights(page, trace.attention)
    words.filter(has_text=re.compile("^dogs$")).click()
    page.keyboard.press("h")
    visit.settle()
    expect(finding).to_contain_text("“dogs” hidden")
    page.keyboard.press("k")
    visit.settle()
    page.locator(".stage canvas").press("o")
    visit.settle()
    asked = parse_qs(urlsplit(page.url).query)
    assert asked["causal"] == ["false"] and "encoder=hide:2; cross=hide:2" in asked["changes"][0]
    (line,) = asked["changes"]
    assert line.endswith("=off")
    changed = en_fr.trace(text, masks=Masks(causal=False), changes=line).attention
    expect_weights(page, changed)
    visit.open(page.url.removeprefix(f"{visit.address}/"))
    expect_weights(page, changed)
    picture = "headlightStage.stage.parts.canvas.toDataURL()"
    light = page.evaluate(picture)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(HAS_SCHEME, arg="dark")
    page.wait_for_function(f"(light) => {picture} !== light", arg=light)


def test_the_answer_of_a_lesson_stands_nowhere_until_it_is_given_and_then_stays(visit):
    page = visit.page
    page.set_viewport_size({"width": 1280, "height": 720})
    visit.open(QUESTION)
    page.evaluate("localStorage.clear()")
    visit.open(QUESTION)
    finding, choices = page.locator(FINDING), page.locator('[class*="st-key-choice"] button')
    expect(finding).to_contain_text("The row of Gruppe is covered")
    assert page.evaluate(ROW) == [0] * 12 and choices.count() == 4
    keys = "|".join(map(re.escape, choices.all_inner_texts()))
    assert not re.search(rf"({keys})\W+\d+%|Next token", page.evaluate(TEXT))
    choices.filter(has_not_text="group").first.click()
    visit.settle()
    expect(finding).to_contain_text("Try once more.")  # a wrong one counts, and may be mended once
    assert page.evaluate(ROW) == [0] * 12
    word = page.locator(".st-key-stage_place .words .w")
    word.filter(has_text=re.compile("^group$")).click()
    visit.settle()
    expect(finding).to_contain_text("Right. Gruppe gives 90% of its attention to group.")
    assert any(page.evaluate(ROW))
    visit.open(page.url.split("/", 3)[3])
    expect(finding).to_contain_text("The answer is group.")
    assert step(visit) == 3
    press(visit, "step_on")
    assert step(visit) == 4
    page.evaluate("localStorage.clear()")


def test_a_pack_opens_again_and_brings_the_view_its_page_and_controls_back(visit, tmp_path):
    """In another session. A pack that is broken is refused before, and the session goes on."""
    run = "causal=false&pad_to=20&changes=cross.3%3Dpatch&other=A+dog+is+running+home."
    visit.open(f"inside?kind=cross&layer=3&head=2&at=Softmax&{run}")
    visit.type(text := "A man & a woman run home?").go("Share")
    pack = take(visit, "Evidence pack", tmp_path)
    assert settings_in(pack)["permalink"].startswith("inside?")
    visit.open("take-away?model=uneven")
    broken, chooser = tmp_path / "broken.zip", visit.page.locator("input[type=file]")
    broken.write_bytes(pack.read_bytes()[:5000])
    chooser.set_input_files(broken)
    verdict = visit.page.locator(".st-key-verdict")
    expect(verdict).to_contain_text("could not be opened")
    chooser.set_input_files(pack)
    expect(verdict).to_contain_text("identical")
    expect(verdict).to_be_in_viewport()
    visit.settle()
    visit.page.get_by_role("link", name="Back to Inside").click()
    expect(visit.page.get_by_role("heading", name="6. Softmax")).to_be_visible()
    assert parse_qs(urlsplit(visit.page.url).query)["source"] == [text]
    visit.settle().expect_head("cross", 3, 2)
    assert all(part in visit.page.url for part in ("at=Softmax", *run.split("&")))
    assert "model=" not in visit.page.url


def test_a_live_page_reads_writes_and_changes_without_a_network(chromium, tmp_path):
    copy, file = load("copy"), tmp_path / "copy.html"
    file.write_text(live_page("copy"), encoding="utf-8")
    page, asked, errors = alone(chromium, file)

    def expect_answer():
        expect(page.locator("html[data-idle]")).to_be_attached()

    def expect_trace(text, changes=""):
        expect_answer()
        trace = copy.trace(text, changes=changes)
        sides = page.locator(".side:not(.written)").all()
        for side, own in zip(sides, (trace.src, trace.tgt), strict=True):
            words = [token for token, role in zip(own.tokens, own.roles, strict=True) if not role]
            expect(side.locator("button:not([hidden])")).to_have_text(words)
        assert copy.translate(text, changes=changes).text == " ".join(words)  # of the last side

    expect_answer()  # to what it opens with
    page.get_by_role("button", name="Type another sentence").click()
    page.get_by_role("textbox", name="Sentence").fill("w o r d")
    page.keyboard.press("Enter")
    expect_trace("w o r d")
    picture = "document.querySelector('canvas').toDataURL()"
    before = page.evaluate(picture)
    page.locator("canvas").press("o")
    expect(page.locator(".done")).to_have_text(re.compile(r" off ×$"))
    expect_trace("w o r d")
    page.wait_for_timeout(600)
    assert page.evaluate(picture) != before
    assert not errors and all(address.startswith(("file:", "blob:")) for address in asked)
    page.context.close()
