"""Lessons in the app, without a browser: each is answered to its end, right and wrong, on its own
sentence and on another; Back and Leave; what is veiled."""

import json

import numpy as np
import pytest
import streamlit as st

from headlight.app.components import stage as component
from headlight.app.lessons.answers import Marker, read
from headlight.app.lessons.lesson import load_folder
from headlight.app.lessons.question import CHOOSE, DO, FIND, NUMBER, PAINT, READ
from headlight.app.shell import lesson as lesson_page
from headlight.app.shell import running_lesson, stage
from headlight.app.state.pages import PAGES
from headlight.app.state.settings import SETTINGS
from headlight.app.views import learn
from tests.app.common import components, forget_all, words
from tests.app.lessons.common import loaded
from tests.app.lessons.test_lesson_files import GOOD
from tests.conftest import long_but

LESSONS = {lesson.name: lesson for lesson in load_folder()[0]}
FIRST = "1-shares"
OWN = {"model": "en-de", "source": "A dog runs.", "causal": "false", "pad_to": "12"}


@pytest.fixture(autouse=True)
def cards(monkeypatch):
    """The cards of the lessons as buttons, which a test without a browser can click."""
    drawn = []

    def buttons(cards, first, below, palette, on_start):
        drawn[:] = [first, {card.name: card for card in cards}]
        for card in cards:
            st.button(card.title, key=f"start {card.name}", on_click=on_start, args=(card.name,))

    monkeypatch.setattr(learn, "lesson_cards", buttons)
    return drawn


def memo(page):
    return page.session_state["_memo"]


def running(page):
    return memo(page).lesson.running


def settings_of(page):
    values = memo(page).context.values
    left_out = "lesson", "step_of_lesson"
    return {k: v for k, v in values.items() if SETTINGS[k].address and k not in left_out}


def said(page):
    """What the lesson says: in boxes, or on the stage in the place of the finding."""
    boxes = [box.value for box in (*page.success, *page.warning, *page.info, *page.markdown)]
    slides = [look["slide"] for look in components(page, "stage_look") if look["slide"]]
    return boxes + [slide["text"] for slide in slides]


def follow(page):
    """As the link of the step does."""
    now = running(page)
    if now.page != memo(page).page:
        page.switch_page(now.page).run()
    assert running(page).page == memo(page).page
    return running(page)


def click(page, key):
    page.button(key=key).click().run()
    assert not page.exception


def begin(page, name):
    page.run()
    page.switch_page("learn").run()
    click(page, f"start {name}")
    return follow(page)


def wrong_answer(question):
    if question.kind == CHOOSE:
        return next(choice for choice in question.choices if choice != question.answer)
    if question.kind == NUMBER:
        return 98765
    if question.answer.ndim == 2:
        return ~question.answer
    return np.eye(len(question.answer))[question.answer.argmin()]


def give(page, right=True):
    """Answers the open question by the page's own controls, where a test can reach them."""
    now = running(page)
    question, step = now.question, f"{now.lesson.name} {now.step.number} {now.attempt}"
    if question.kind in (DO, FIND) and not right:
        return click(page, "show_answer")
    answer = question.answer if right or question.kind in (DO, FIND) else wrong_answer(question)
    if question.kind == CHOOSE:
        click(page, f"choice {question.choices.index(answer)} {step}")
    elif question.kind == NUMBER:
        page.text_input(key=f"number {step}").set_value(repr(float(answer)))
        page.button(key=f"FormSubmitter:form {step}-Answer").click().run()
    elif question.kind == FIND:
        kind, layer, head = min(answer)
        chosen = kind, now.run.base.kinds[kind][layer].layer + 1, head + 1
        for key, value in zip(("kind", "layer", "head"), chosen, strict=True):
            page.session_state[key] = value
        page.run()
        click(page, f"find {step}")
    elif question.kind == DO:
        act = dict(answer)
        if "query" in act:
            memo(page).lesson.query = act.pop("query")
        for key, value in act.items():
            page.session_state["source" if key == "line" else key] = value
        page.run()
        if running(page).is_open:  # the step opens on such a sample: draw another one
            page.session_state["seed"] = 1
            page.run()
    elif question.kind == PAINT:
        progress = memo(page).lesson.progress
        painted = answer.tolist() if isinstance(answer, np.ndarray) else answer
        given = running_lesson.answer_of(now.step, now.run, progress.seed, painted, now.attempt)
        progress.answers.setdefault(now.lesson.name, []).append(given)
        page.run()
    assert not page.exception
    return None


OWN_SENTENCES = {"induction": "w i n t e r w i n t e r"}


def type_own(page):
    """A sentence for a step that waits for one."""
    own = "A woman in a blue dress plays the guitar."
    page.session_state["source"] = OWN_SENTENCES.get(running(page).run.name, own)
    page.run()


def through(page, name, right):
    """Answers every step of a lesson; the numbers of those that were there."""
    numbers = []
    while True:
        now = follow(page)
        if now.waits:
            assert any(now.problem in text.replace("\\", "") for text in said(page))
            type_own(page)
            now = running(page)
        assert now.problem == "" and memo(page).lesson.problem == ""
        numbers.append(now.step.number)
        if now.step.kind != READ:
            assert now.is_open
            give(page, right)
            if running(page).first is not None:  # asked once more
                click(page, "show_answer")
            now = running(page)
            assert now.given is not None
            mark = now.question.mark(now.given.answer)
            assert mark.right is (right or now.given.shown)
            end = now.question.reveal_after(now.given.answer)[-20:]
            assert any(end in text for text in said(page))
        if any(button.key == "finish_lesson" for button in page.button):
            return numbers
        click(page, "step_on")


@pytest.mark.parametrize("name", long_but([FIRST, "4-masks"], LESSONS))
@pytest.mark.parametrize("right", long_but([True], [True, False]))
def test_a_lesson_from_its_first_step_to_its_last(page, name, right):
    page.query_params.update(OWN)
    page.run()
    before = settings_of(page)
    begin(page, name)
    numbers = through(page, name, right)
    steps = LESSONS[name].steps
    assert numbers[0] == 1 and numbers[-1] == len(steps)
    progress = memo(page).lesson.progress
    file = running_lesson.to_json(
        "Ada", progress.seed, LESSONS[name], progress.weights[name], progress.answers[name]
    )
    grade = Marker([LESSONS[name]], loaded).grade(file)
    asked = [n for n in numbers if steps[n - 1].kind != READ]
    if right:
        assert grade.right == grade.answered == len(asked)
    else:
        shown = sum(answer["shown"] for answer in read(file)["answers"])
        assert grade.right == 0 and grade.answered == len(asked) - shown
    exercises = [each.key for each in page.get("download_button") if "exercise" in str(each.key)]
    written = LESSONS[name].source.front.get("write")
    assert exercises == ([f"exercise {written}"] if written else [])
    click(page, "finish_lesson")
    assert running(page) is None
    after = settings_of(page)
    assert {key: after[key] for key in before} == before
    assert name in progress.done


def test_a_finished_lesson_says_how_it_went_and_offers_the_next_one(page, cards):
    begin(page, FIRST)
    click(page, "step_on")
    click(page, "step_on")
    give(page, right=False)  # asked once more: the first answer counts
    give(page)
    click(page, "step_on")
    give(page)
    page.session_state["step_of_lesson"] = len(LESSONS[FIRST].steps)
    page.run()
    type_own(page)
    click(page, "show_answer")
    click(page, "finish_lesson")
    assert page.success[0].value.startswith("**1 of 3** right")
    assert page.button(key="next_lesson").label.startswith(r"Next: Query\, key\, value")
    page.switch_page("learn").run()
    assert "**1 of 3** right" in words(page)
    first, shown = cards
    assert first == "2-query-key-value" and (shown[FIRST].right, shown[FIRST].questions) == (1, 3)
    assert shown[first].right is None and shown[first].step == 0 and shown[first].picture
    page.switch_page("stage").run()
    click(page, "close_finished")
    assert not page.success
    progress = memo(page).lesson.progress
    kept = json.loads(text_of(progress))
    assert running_lesson._read(kept) == progress
    del kept["right"]  # as it was kept before there was such a count
    assert running_lesson._read(kept).right == {}


def text_of(progress):
    """What a browser keeps."""
    answers = {name: [vars(a) for a in some] for name, some in progress.answers.items()}
    return json.dumps(vars(progress) | {"answers": answers})


def test_back_and_leave(page):
    page.query_params.update(OWN)
    page.run()
    before = settings_of(page)
    begin(page, FIRST)
    assert not {"causal": False, "pad_to": 12}.items() & settings_of(page).items()
    for _ in range(3):
        click(page, "step_on")
    assert running(page).step.number == 4
    give(page)
    given = running(page).given
    click(page, "step_back")
    assert running(page).step.number == 3 and running(page).is_open
    click(page, "step_on")
    assert running(page).given == given
    click(page, "leave_lesson")
    assert running(page) is None and settings_of(page)["source"] == before["source"]
    assert not settings_of(page)["causal"] and settings_of(page)["pad_to"] == 12
    page.switch_page("learn").run()
    click(page, f"start {FIRST}")
    assert running(page).step.number == 5  # after the last answer


def test_nothing_is_given_away_while_a_question_is_open(page, monkeypatch):
    sent = []
    monkeypatch.setattr(component, "_mount_more", lambda data, **other: sent.append(data))
    begin(page, FIRST)
    click(page, "step_on")
    click(page, "step_on")
    ((veil),) = running(page).question.veil
    (look,) = components(page, "stage_look")
    assert look["veil"][0] == vars(veil) and not look["covered"]
    assert not components(page, "stage_said") and not page.dataframe
    place = {"kind": veil.kind, "layer": veil.layer, "head": veil.head, "query": veil.place}
    place |= {"key": 1, "row": veil.place}
    memo(page).asked = [{"what": what, **place} for what in stage.ANSWERS]
    memo(page).drawer = "stage"
    page.run()
    told = json.loads(sent[-1][4 : 4 + int.from_bytes(sent[-1][:4], "little")])["answers"]
    assert len(told) == len(stage.ANSWERS)
    assert all(answer["value"] == {"isMissing": True} for answer in told)
    assert "Numbers" not in " ".join(text.value for text in page.markdown)
    memo(page).drawer = ""
    for key in {*PAGES} - {"stage", "learn"}:
        page.switch_page(key).run()
        assert not page.exception
        (box,) = (box.value for box in page.info)
        assert "question" in box and not page.get("download_button"), key
    page.switch_page("stage").run()
    for key, value in {"source": "Oh, a girl reads.", "target": "Ein Buch", "pad_to": 30}.items():
        before = page.settings[key]
        for chosen in (value, before):  # the row would come to another place
            page.session_state[key] = chosen
            page.run()
            (look,) = components(page, "stage_look")
            assert look["covered"] == (chosen == value), key
    click(page, "show_answer")
    (look,) = components(page, "stage_look")
    assert vars(veil) not in look["veil"]
    page.switch_page("bertviz").run()
    assert not page.info[1:]


def test_rows_of_later_questions_are_covered_from_the_first_step_on(page):
    begin(page, FIRST)
    (look,) = components(page, "stage_look")
    first, asked = look["veil"], {}
    while len(asked) < 3:
        now = running(page)
        if now.is_open and now.question.veil[0].what == "row":
            asked[now.step.number] = vars(now.question.veil[0])
        click(page, "step_on")
    assert all(veil in first for veil in asked.values())


def test_a_wrong_answer_leaves_one_more_try(page):
    """With the hint, and without the answer; the first one counts."""
    begin(page, FIRST)
    while running(page).step.kind != CHOOSE or len(running(page).question.choices) < 3:
        click(page, "step_on")
    question = running(page).question
    give(page, right=False)
    now, text = running(page), said(page)[-1]
    assert now.is_open and "once more" in text and question.hint in text
    assert "The answer is" not in text and question.reveal not in text
    assert len([b for b in page.button if b.key.startswith("choice")]) == len(question.choices) - 1
    give(page)
    assert said(page)[-1].startswith("Right.") and not running(page).is_open
    (answer,) = memo(page).lesson.progress.answers[FIRST]
    assert not question.mark(answer.answer).right
    assert not any(b.key == "ask_again" for b in page.button)


def test_ask_me_again_asks_something_else(page):
    begin(page, "3-score")
    while running(page).step.kind != NUMBER:
        click(page, "step_on")
    asked = {running(page).question.text}
    for _ in range(3):
        give(page, right=False)
        click(page, "show_answer")
        click(page, "ask_again")
        assert running(page).is_open and running(page).question.text not in asked
        asked.add(running(page).question.text)


@pytest.mark.parametrize("name", long_but([FIRST, "6-decoding"], LESSONS))
def test_a_link_that_names_a_lesson_alone_opens_it_on_its_own_sentence(page, name):
    page.query_params["lesson"] = name
    for _ in range(2):
        page.run()
        assert not page.exception and not memo(page).lesson.problem
        run, shown = running(page).run, memo(page).context.values
        assert (shown["model"], shown["line"]) == (run.name, run.sentence)


def test_punctuation_is_quoted_and_no_full_stop_doubled():
    written = running_lesson.written
    assert (written("."), written("dog"), written("<s>")) == ("“\\.”", "dog", "\\<s\\>")
    assert lesson_page._ended("*Rows do not\\.*") == "*Rows do not\\.*"
    assert lesson_page._ended("*dog*") == "*dog*."


def test_what_a_browser_kept_is_taken_up(page):
    begin(page, FIRST)
    for _ in range(2):
        click(page, "step_on")
    give(page, right=False)
    assert said(page)[-1].startswith("You said ")
    progress = memo(page).lesson.progress
    kept = text_of(progress)
    state = running_lesson._read(json.loads(kept))
    assert state == progress
    for text in ("{}", "[]", "null", "9", '{"seed": "x"}', kept[:-9], kept.replace("1", "[]")):
        with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
            running_lesson._read(json.loads(text))


def test_an_unknown_lesson_in_the_address(page):
    page.query_params.update({"lesson": "none", "step_of_lesson": "3"})
    page.run()
    assert any("no lesson" in box.value for box in page.warning)
    click(page, "leave_lesson")
    assert not page.warning


def test_a_folder_of_ones_own_lessons(page, monkeypatch, tmp_path):
    (tmp_path / "own.md").write_text(GOOD, encoding="utf-8")
    (tmp_path / "broken.md").write_text("---\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["main.py", "--lessons", str(tmp_path)])
    forget_all()
    try:
        begin(page, "own")
        assert running(page).lesson.name == "own" and len(running_lesson.lessons()) == 8
        page.switch_page("learn").run()
        assert any("broken" in box.value.replace("\\", "") for box in page.warning)
    finally:
        forget_all()
