"""One lesson by clicks, over three pages and to its end: all answers right, all wrong, and with a
sentence of the student's own; tests/app/lessons marks the answers of all. The right ones are drawn
here from the student's seed, as the app draws them."""

import json
import re
from functools import cache
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import expect

from headlight.app.lessons.answers import Marker, seed_of
from headlight.app.lessons.lesson import load_folder
from headlight.app.lessons.question import DO, READ
from headlight.app.lessons.sentence_run import SentenceRun
from headlight.app.shell.lesson import NO_EXPORT
from headlight.app.state.pages import HOME, PAGES
from headlight.app.text import formats
from tests.app.lessons.common import loaded

pytestmark = pytest.mark.browser
(LESSON,) = (lesson for lesson in load_folder()[0] if lesson.name == "2-query-key-value")
BEFORE = "?model=en-de&source=A+dog+runs.&causal=false&pad_to=12"  # the student's own settings
OWN = "w i n t e r w i n t e r"  # a sentence of the student's
PICTURES = ".stDataFrame, .js-plotly-plot, canvas, svg.words, .st-key-generation, .bars"
SUCCESS, WARNING, INFO = (f"stAlertContent{kind}" for kind in ("Success", "Warning", "Info"))


@cache
def opened():
    return LESSON.open(loaded)


class Student:
    """Who takes a lesson, in the words of these tests."""

    def __init__(self, visit):
        self.visit, self.page = visit, visit.page
        self.own = ""
        self.region = self.page.locator(".st-key-lesson_region")
        visit.open(BEFORE)
        self.page.evaluate("localStorage.clear()")
        visit.open(BEFORE)
        self.before = self.settings()
        self.begin()

    def begin(self):
        self.visit.go("Learn")
        self.page.get_by_role("button", name=LESSON.title).click()
        self.arrive()

    def settings(self) -> dict:
        """What the address says."""
        return dict(parse_qsl(urlsplit(self.page.url).query))

    def arrive(self):
        """At a step, on the page that it is about."""
        self.visit.idle()
        expect(self.page.locator(".st-key-lesson_link")).to_have_count(0)  # it has been followed
        self.visit.idle()
        path = PAGES[self.step.view(self.run)["page"]].path
        assert urlsplit(self.page.url).path == f"/{path}"
        expect(self.region).to_contain_text(self.step.title)

    @property
    def number(self) -> int:
        counted = self.region.get_by_text(re.compile(r"step \d+ of")).inner_text()
        return int(re.search(r"step (\d+) of", counted)[1])

    @property
    def step(self):
        return LESSON.steps[self.number - 1]

    @property
    def run(self):
        run = self.step.run(opened(), loaded)
        typed = self.own if self.step.asks_own_sentence else ""
        return SentenceRun(loaded(run.name), run.name, typed) if typed else run

    def question(self):
        kept = json.loads(self.page.evaluate("localStorage.getItem('headlight lessons')"))
        seed = seed_of(kept["seed"], LESSON.name, self.number)
        return self.step.question(self.run, seed, formats.escaped)

    def press(self, key):
        self.page.locator(f".st-key-{key} button").click()
        self.visit.idle()

    def go(self, key):
        """To another step."""
        self.press(key)
        self.arrive()

    def is_at_end(self) -> bool:
        return not self.page.locator(".st-key-step_on").count()

    def answer(self, question, right=True):
        """By the controls that the page offers; what nobody can do wrongly is shown."""
        getattr(self, f"_{question.kind}")(question, right)
        self.visit.settle()
        if not right and self.region.get_by_text("Try once more").count():
            self.press("show_answer")
            self.visit.settle()

    def _choose(self, question, right):
        wanted = next(c for c in question.choices if (c == question.answer) is right)
        choices = self.region.locator('[class*="st-key-choice"] button')
        choices.nth(question.choices.index(wanted)).click()

    def _number(self, question, right):
        box = self.region.get_by_label("Your answer")
        box.fill(repr(float(question.answer)) if right else "98765")
        box.press("Enter")

    def _find(self, question, right):
        if right:
            kind, layer, head = min(question.answer)
            number = self.run.base.kinds[kind][layer].layer + 1
            if len(self.run.base.kinds) > 1:
                self.visit.choose("kind", kind)
            self.visit.choose("layer", number).choose("head", head + 1)
        self.region.locator(
            '[class*="st-key-find"] button'
        ).click()  # else of the head that it opened

    def _do(self, question, right):
        if not right:
            return self.press("show_answer")
        for key, value in question.answer.items():
            getattr(self, f"_do_{key}")(value)
        return None

    def _do_query(self, _):
        query = self.page.get_by_label("Query rollercoaster")
        query.focus()
        for _ in range(12):
            query.press("ArrowLeft")
            query.press("ArrowUp")

    def _do_line(self, line):
        self.visit.type(line)

    def said(self) -> str:
        return self.region.locator(".stAlert").last.inner_text()

    def expect_covered(self, question):
        """Where the page is shown, its grid covers what is asked for; else there is no picture."""
        if not question.veil:
            return
        texts = self.page.locator(".st-key-body").inner_text()
        assert "Next token" not in texts and "Numbers" not in texts
        if "Covered until you answer" in texts:
            expect(self.page.locator(".st-key-hero").locator(PICTURES)).to_have_count(0)
        else:
            assert urlsplit(self.page.url).path == f"/{PAGES[HOME].path}"
            look = self.page.evaluate("window.headlight.grid.look")
            assert look["veil"] == [vars(veil) for veil in question.veil]
            assert not look["said"] and not look.get("moved")

    def expect_no_export(self):
        """Share has nothing to take away; a link leads back."""
        self.visit.go("Export")
        expect(self.page.get_by_text(NO_EXPORT.split(".")[0])).to_be_visible()
        for some in ("stDownloadButton", "stIFrame"):
            expect(self.page.locator(".st-key-body").get_by_test_id(some)).to_have_count(0)
        self.page.locator(".st-key-lesson_link a").click()
        self.arrive()

    def expect_mark(self, question, right):
        """What the page says of an answer."""
        shown = not right and question.kind == DO
        kind = SUCCESS if right else INFO if shown else WARNING
        expect(self.region.get_by_test_id(kind)).to_be_visible()
        assert not self.region.locator(".st-key-show_answer").count()

    def expect_place(self):
        """Back and a reload keep step and answer."""
        number, said = self.number, self.said()
        self.go("step_back")
        assert self.number < number
        self.go("step_on")
        assert (self.number, self.said()) == (number, said)
        self.visit.open(self.page.url.split("/", 3)[3])
        expect(self.region.locator(".stAlert").last).to_have_text(said)
        self.arrive()
        assert self.number == number

    def expect_leaving_keeps_place(self):
        """The lesson goes on after the last answer."""
        number = self.number
        self.press("leave_lesson")
        self.expect_own_settings()
        self.begin()
        assert self.number > number

    def expect_own_settings(self):
        now = self.settings()
        assert {key: now.get(key) for key in self.before} == self.before
        assert "lesson" not in now

    def finish(self):
        self.press("finish_lesson")
        self.expect_own_settings()
        self.visit.go("Learn")
        row = self.page.locator('[class*="st-key-lesson_row"]', has_text=LESSON.title)
        expect(row).to_contain_text("done")
        self.page.evaluate("localStorage.clear()")


def steps() -> list[int]:
    """Those that the lesson's models have something to say about."""
    return [step.number for step in LESSON.steps if step.concerns(step.run(opened(), loaded))]


@pytest.mark.timeout(120)
def test_all_right(visit):
    student, numbers = Student(visit), []
    while True:
        numbers.append(student.number)
        if student.step.kind != READ:
            question = student.question()
            student.answer(question)
            student.expect_mark(question, right=True)
            if len(numbers) == len(steps()) // 2:
                student.expect_place()
        if student.is_at_end():
            break
        student.go("step_on")
    assert numbers == steps()
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name="My answers").click()
    grade = Marker([LESSON], loaded).grade(download.value.path().read_text())
    asked = [n for n in numbers if LESSON.steps[n - 1].kind != READ]
    assert grade.right == grade.answered == len(asked)
    student.finish()


@pytest.mark.long
def test_all_wrong(visit):
    """Nothing is given away meanwhile, on the page or by Share; one leaves and comes back."""
    student, numbers, taken = Student(visit), [], set()
    while True:
        number, step = student.number, student.step
        numbers.append(number)
        if step.kind != READ:
            question, keys = student.question(), step.source.keys
            of = keys.get("type"), keys.get("ask")
            student.expect_covered(question)
            if question.veil and of not in taken:
                taken.add(of)
                student.expect_no_export()
            student.answer(question, right=False)
            student.expect_mark(question, right=False)
            if not student.is_at_end():
                student.expect_leaving_keeps_place()
                continue
        if student.is_at_end():
            break
        student.go("step_on")
    assert numbers == steps()
    student.finish()


@pytest.mark.long
def test_a_sentence_of_ones_own(visit):
    """To the last step without an answer, and there with a sentence that is typed."""
    student, numbers = Student(visit), [1]
    while not student.step.asks_own_sentence:
        student.go("step_on")
        numbers.append(student.number)
    assert numbers == steps()
    visit.type(OWN)
    student.own = OWN
    question = student.question()
    student.expect_covered(question)
    student.answer(question)
    student.expect_mark(question, right=True)
    said = student.said()
    student.go("step_back")
    student.go("step_on")
    visit.type(OWN)
    assert student.said() == said
    student.finish()
