"""A lesson in a live page: its questions and marks against the app's, and what a student does."""

import re
from functools import cache

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from headlight.app.components.scripts import script
from headlight.app.lessons.question import CHOOSE, DO, FIND, NUMBER, READ
from headlight.app.lessons.sentence_run import NoQuestion, SentenceRun
from headlight.app.live import lesson as live_lesson
from headlight.app.live.build import page
from headlight.app.server.command import main
from headlight.model.checkpoint import load
from headlight.model.masks import Masks
from tests.browser.test_live_page import (  # noqa: F401
    browser,
    new_tab,
    one_thread,
    opened_in_a_tab,
    sentences,
)

pytestmark = pytest.mark.browser
LESSONS = live_lesson.CARRIED
TRAINED = {"masks": vars(Masks()), "changes": "", "padTo": 0, "beam": 1, "target": ""}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The page of a lesson, as a file."""
    folder = tmp_path_factory.mktemp("lessons")

    @cache
    def built(name):
        model = LESSONS[name]
        carried = live_lesson.carried(live_lesson.find(name), model, cache(load))
        path = folder / f"{name}.html"
        path.write_text(page(model, carried=carried), encoding="utf-8")
        return path

    return built


def asked(step, run, seed=0):
    try:
        return step.question(run, seed)
    except NoQuestion as problem:
        return {"problem": str(problem)}


def answers_to(question, run):
    """Right, wrong in every way that has a name, and nearly right."""
    if question.kind == CHOOSE:
        return [(choice, choice) for choice in question.choices]
    if question.kind == NUMBER:
        some = [question.answer, *(m.answer for m in question.misconceptions)]
        typed = [f"{100 * x:.1f}%" for x in some] + [f"{some[0]:.3f}", "1/3", ",5", "100", "0.0"]
        return [(x, x) for x in [*typed, f"{100 * some[0] + 3:.0f}%", "half", "1/0"]]
    return [((k, x, y), f"{k} {x} {y}") for k, w in run.base.attention.items()
            for x, y in np.ndindex(w.shape[:2])]  # fmt: skip


@pytest.mark.parametrize("name", LESSONS)
def test_questions_and_marks_are_those_of_the_app(opened, name):
    """Over the lesson's sentences and others, and seeds: in these lessons a seed only shuffles."""
    lesson, model = live_lesson.find(name), LESSONS[name]
    checkpoint = load(model)
    tab = opened(name).page
    tab.evaluate(f"() => {{ {script('../../tests/browser/live_parity.js')} }}")
    ask = lambda what, question: tab.evaluate(f"(question) => live.{what}(question)", question)  # noqa: E731
    whole = live_lesson.carried(lesson, model, cache(load))
    steps, texts = whole["steps"], [whole["sentence"]]
    compared = marks = 0
    if name == "shares":  # in others the head depends on the sentence
        texts = [text for _, text in lesson.runs()] + sentences(model, 3)
    for text in texts:
        run = SentenceRun(checkpoint, model, text)
        for number, (step, carried) in enumerate(zip(lesson.steps, steps, strict=True), 1):
            if not carried["carried"]:
                continue
            got = ask("question", {"source": text, "step": number, **TRAINED})
            expected = asked(step, run)
            if isinstance(expected, dict) or "problem" in got:
                assert got == expected, (text, number)
                continue
            assert got["kind"] == expected.kind
            values = run.common | dict(expected.given)
            told = {k: v for k, v in {**run.common, **got["given"]}.items() if k in values}
            known = set(
                re.findall(r"\{([^{}]+)\}", step.source.text + step.source.parts.get("Hint", ""))
            )
            assert {k: values[k] for k in known} == {k: told[k] for k in known}, (text, number)
            shown = values | dict(expected.shown)
            known = set(re.findall(r"\{([^{}]+)\}", step.source.parts.get("Reveal", "")))
            mine = {**run.common, **got["given"], **got["shown"]}
            assert {k: shown[k] for k in known} == {k: mine[k] for k in known}, (text, number)
            compared += 1
            if expected.kind in (READ, DO):
                continue
            if expected.kind == CHOOSE:
                for seed in range(3):
                    again = asked(step, run, seed)
                    assert (again.answer, set(again.choices)) == (
                        got["answer"],
                        set(got["choices"]),
                    )
            elif expected.kind == NUMBER:
                assert got["answer"] == pytest.approx(expected.answer, abs=1e-5)
            elif expected.kind == FIND:
                assert set(got["answer"]) == {f"{k} {x} {y}" for k, x, y in expected.answer}
            (veil,) = expected.veil
            if expected.kind != FIND:
                where = {k: v for k, v in vars(veil).items() if k != "what"}
                assert where.items() <= got["veil"][0].items()
            for theirs, typed in answers_to(expected, run):
                marked = ask("mark", {"question": got, "answer": typed})
                try:
                    mark = expected.mark(theirs)
                except ValueError:
                    assert "error" in marked, typed
                    continue
                assert marked["right"] == mark.right, (text, number, typed)
                assert marked["misconception"] == mark.misconception, (text, number, typed)
                marks += 1
    print(f"{name}: {compared} questions, {marks} marks")
    assert compared == len(texts) * sum(step["carried"] for step in steps) or name == "shares"
    assert compared > 1 and marks


# The page


class Lesson:
    """The lesson of an opened page."""

    def __init__(self, tab):
        self.tab, self.panel = tab, tab.page.locator("#lesson")

    def press(self, name):
        self.panel.get_by_role("button", name=name, exact=True).click()
        self.tab.answered()
        return self

    def to(self, title):
        while title != self.panel.get_by_role("heading").inner_text():
            self.press("Next")
        return self

    def says(self):
        return self.panel.get_by_role("status").inner_text()


def test_a_row_is_covered_until_the_question_is_answered(opened):
    tab = opened("shares")
    lesson = Lesson(tab)
    expect(lesson.panel).to_contain_text("step 1 of 10")
    lesson.to("Your turn")
    row = tab.page.locator(".text .target span").nth(2)
    row.hover()
    assert "is covered until you answer" in tab.finding()
    for hidden in ("#views", "#change", ".tools"):
        expect(tab.page.locator(hidden).first).to_be_hidden()
    tiles = tab.grid()[1]
    tab.page.locator(".stage").press("o")  # nothing can be changed
    assert tab.answered().text("state") == "As trained"
    lesson.press("listening")
    assert lesson.says() == "You said listening. Try once more."  # with the hint, still covered
    row.hover()
    assert "is covered until you answer" in tab.finding()
    lesson.press("of")
    assert lesson.says() == "You said of. The answer is group."
    expect(lesson.panel).to_contain_text("Gruppe gives 90% of its attention to group.")
    assert tab.grid()[1] != tiles
    row.hover()
    assert "attends most to group" in tab.finding()
    lesson.press("Back").press("Next")  # what was answered stays answered
    assert lesson.says() == "You said of. The answer is group."
    expect(tab.page.locator("#views")).to_be_visible()
    lesson.to("Out of order").press("Show me")
    assert lesson.says() == "Shown, so it does not count. The answer is talking."
    assert "step=4" in tab.page.url
    tab.page.reload()
    expect(lesson.panel).to_contain_text("Out of order")
    tab.answered()


def test_no_link_leads_behind_the_cover(opened):
    tab = opened("shares", "#step=3&view=alignment&changes=cross.1.2=temperature:2.0")
    expect(tab.page.locator("#lines")).to_be_hidden()
    tab.page.locator(".text .target span").nth(2).hover()
    assert "is covered until you answer" in tab.finding()


def test_numbers_heads_and_changes(opened):
    lesson = Lesson(tab := opened("shares"))
    lesson.to("One square is covered")
    box = lesson.panel.get_by_label("Your answer")
    box.fill("much")
    lesson.press("Answer")
    assert lesson.panel.get_by_role("alert").inner_text() == "“much” is not a number."
    for tries in range(2):
        box.fill("15%")
        box.press("Enter")
        assert ("Try once more." in lesson.says()) is (tries == 0)
    assert lesson.says() == "You said 15%. The answer is 85%."
    expect(lesson.panel).to_contain_text("That is the sum of the others.")
    lesson.to("Try it")
    tab.page.locator(".text .source span", has_text="listening").click()
    tab.page.keyboard.press("h")  # hidden from all heads: not what is asked
    tab.answered()
    expect(lesson.panel).to_contain_text("Waiting for your change.")
    tab.page.keyboard.press("h")
    tab.answered()
    tab.page.get_by_role("button", name="Hide in this head only").click()
    tab.answered()
    assert lesson.says() == "Done." and "Cross 1.2 “listening” hidden ×" in tab.text("state")
    lesson.to("Another head, another habit")
    assert tab.text("state") == "As trained"
    lesson.panel.get_by_role("button", name="Answer: Encoder self-attention").click()
    assert lesson.says() == "That is not it. Try once more."
    lesson.panel.get_by_role("button", name="Answer: Encoder self-attention").click()
    assert lesson.says().startswith("That is not it. The answer is Encoder self-attention, layer ")


def test_a_sentence_of_ones_own(opened):
    lesson = Lesson(tab := opened("shares", "#step=12"))
    assert lesson.says().startswith("Type a short sentence of your own")
    tab.type("A dog runs on the grass.")
    expect(lesson.panel).to_contain_text("Which token will Rasen attend to most?")
    lesson.press("grass")
    assert lesson.says() == "Right."
    for text in ("Remember.", "But.", "Only in the app: Draw a row before you see it, And the"):
        expect(lesson.panel).to_contain_text(text)
    tab.type("!")
    assert lesson.says().startswith("No row of this sentence fits the question.")
    lesson.press("Leave").press("Start the lesson: A row of attention is a set of shares")
    expect(lesson.panel).to_contain_text("step 1 of 10")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_accessible(opened, width, scheme):
    tab = opened("shares", "#step=3", viewport={"width": width, "height": 720}, color_scheme=scheme)
    found = Axe().run(tab.page)
    assert found.violations_count == 0, found.generate_report()
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    if width == 390:  # before the picture
        boxes = [tab.page.locator(part).bounding_box()["y"] for part in ("#lesson", "main")]
        assert boxes == sorted(boxes)
    expect(tab.page.locator("#lesson")).to_be_in_viewport()


# The command


def test_the_command_names_what_is_left_out(tmp_path, capsys):
    out = tmp_path / "masks.html"
    main(["page", "en-de", "--lesson", "4-masks", "--out", str(out)])
    assert (
        "Left out, because only the app can show these steps: Count what is"
        in capsys.readouterr().out
    )
    own = tmp_path / "own.md"
    own.write_text(
        (live_lesson.SHIPPED_LESSONS / "1-shares.md").read_text("utf-8"), encoding="utf-8"
    )
    main(["page", "en-de", "--lesson", str(own), "--out", str(out)])
    for name, message in {
        "score": "cannot ask any question of the lesson “The score",
        "nothing": "There is no lesson “nothing”. Choose from shares, ",
        str(tmp_path / "none.md"): "cannot be read",
    }.items():
        with pytest.raises(SystemExit, match=message):
            main(["page", "en-de", "--lesson", name, "--out", str(tmp_path / "no.html")])
    with pytest.raises(SystemExit, match="is about en-de, not copy") as refused:
        main(["page", "copy", "--lesson", "shares", "--out", str(tmp_path / "no.html")])
    for name, model in live_lesson.CARRIED.items():
        assert f"\n  headlight page {model} --lesson {name} --out " in str(refused.value)
