"""Every lesson on the models that are shipped: each step has a view, a question and all its words,
and what it says holds."""

import re
from contextlib import suppress
from functools import cache

import numpy as np
import pytest

from headlight.app.components.packing import answers_of, covered, pack_trace
from headlight.app.lessons.__main__ import main
from headlight.app.lessons.lesson import LiveLesson, load_folder, load_lesson
from headlight.app.lessons.lesson_file import LessonError
from headlight.app.lessons.question import CHOOSE, DO, FIND, NUMBER, PAINT, READ
from headlight.app.lessons.question_types.acts import UNTIL
from headlight.app.lessons.sentence_run import NoQuestion, SentenceRun, names_of
from headlight.app.shell.stage import covers
from headlight.app.state.pages import HOME, PAGES
from headlight.app.state.settings import SETTINGS
from headlight.model.analysis.reading import Reading
from headlight.model.masks import Masks
from headlight.model.rounding import percent
from tests.app.lessons import truth
from tests.app.lessons.common import loaded, run_of
from tests.app.lessons.test_lesson_files import GOOD
from tests.app.test_packing import unpack as unpacked
from tests.conftest import ROOT

LESSONS = {lesson.name: lesson for lesson in load_folder()[0]}
STEPS = [(name, step.number) for name, lesson in LESSONS.items() for step in lesson.steps]


@cache
def opened(name):
    return LESSONS[name].open(loaded)


def step_of(case):
    name, number = case
    step = LESSONS[name].steps[number - 1]
    return step, step.run(opened(name), loaded)


@pytest.mark.parametrize("case", STEPS, ids=lambda case: f"{case[0]} {case[1]}")
def test_a_step_works(case):
    step, run = step_of(case)
    if not step.concerns(run):
        pytest.skip("left out of this model")
    view = step.view(run)
    assert view["page"] in PAGES and view["line"] == run.sentence
    for key, value in view.items():
        assert key == "page" or SETTINGS[key].could_be(value), key
    if "head" in view:
        numbers = [site.layer + 1 for site in run.base.kinds[view["kind"]]]
        assert view["layer"] in numbers and view["head"] >= 1
    about_the_run = {"row", "shares", "shape", "without", "named head"}
    for seed in range(3):
        question = step.question(run, seed)
        assert question.kind == step.kind
        assert question.veil or step.source.keys.get("type") not in about_the_run
        for text in (question.text, question.hint, question.reveal_after(), *question.choices):
            assert "{" not in text and "}" not in text
        for m in question.misconceptions:
            assert "{" not in m.sentence
        assert bool(question.text) and (step.kind == READ or question.reveal)
        again = step.question(run, seed)
        assert (again.text, again.choices) == (question.text, question.choices)


def right_answer(question):
    return min(question.answer) if question.kind == FIND else question.answer


@pytest.mark.parametrize("case", STEPS, ids=lambda case: f"{case[0]} {case[1]}")
def test_all_right_and_all_wrong(case):
    step, run = step_of(case)
    question = step.question(run, 1)
    if step.kind == READ:
        return
    assert question.mark(right_answer(question)).right
    if step.kind == CHOOSE:
        wrong = [question.mark(c) for c in question.choices if c != question.answer]
        assert wrong and not any(mark.right or mark.score for mark in wrong)
        with pytest.raises(ValueError, match="not one of the choices"):
            question.mark("something else")
    elif step.kind == NUMBER:
        assert not question.mark("987654").right
    elif step.kind == PAINT and question.answer.ndim == 2:
        assert not question.mark(~question.answer).right
    elif step.kind == DO:
        assert not question.mark({}).right and not question.mark({"changes": "nonsense"}).right
    elif step.kind == FIND:
        view = step.view(run)
        shown = view["kind"], view["layer"] - 1, view["head"] - 1
        assert not question.mark(shown).right  # opening the step gives nothing away


@pytest.mark.parametrize("name", LESSONS)
def test_what_a_step_asks_about_is_not_in_the_bytes_of_the_stage(name):
    """At whatever depth: all are drawn from these."""
    for step in LESSONS[name].steps:
        run = step.run(opened(name), loaded)
        if step.page != HOME or not step.concerns(run):
            continue
        veils = step.question(run).veil
        whole = pack_trace(run.base, Reading(), answers_of(run.base, run.checkpoint.outputs))
        (before, parts), (after, covered_parts) = (
            unpacked(packed) for packed in (whole, covered(whole, covers(veils, run.base.kinds)))
        )
        assert before["answers"] or not run.writes
        assert after["answers"] is None and after["id"] != before["id"]
        for kind, cells in covered_parts.items():
            kept = np.ones_like(cells, dtype=bool)
            for veil in veils:
                if veil.what == "masks":
                    kept[:] &= veil.kind not in (None, kind)
                elif veil.what in ("lines", "needed words"):
                    kept[:] &= kind != "cross"
                elif veil.kind == kind and veil.what == "row":
                    kept[veil.layer, veil.head, veil.place] = False
                elif veil.kind == kind and veil.what == "column":
                    kept[veil.layer, veil.head] = False
            assert np.array_equal(cells, parts[kind] * kept), (step.number, kind)


# What the texts claim, computed apart


def placeholder(case, name, seed=0):
    step, run = step_of(case)
    question = step._draw(run, seed)
    return {**question.given, **question.shown}[name]


def steps_with(**keys):
    asked = {case: LESSONS[case[0]].steps[case[1] - 1].source.keys for case in STEPS}
    return [case for case in STEPS if keys.items() <= {**asked[case]}.items()]


@pytest.mark.parametrize("case", steps_with(ask="largest key"), ids=str)
def test_the_row_attends_to_what_the_reveal_says(case):
    step, run = step_of(case)
    drawing = step._drawing(run, 0)
    step._type.draw(drawing)
    row = truth.weights(run.name, run.sentence, drawing.head)[drawing.chosen[-1]]
    assert placeholder(case, "key") == names_of(run.keys(drawing.head))[int(row.argmax())]
    assert row.max() - np.sort(row)[-2] >= 0.2


@pytest.mark.parametrize("case", steps_with(until="written lacks {row}"), ids=str)
def test_the_act_of_the_hint_changes_what_is_written(case):
    step, run = step_of(case)
    question = step.question(run)
    word = placeholder(case, "row")
    before, _ = truth.greedy(run.name, run.sentence)
    after, _ = truth.greedy(run.name, run.sentence, question.answer["changes"])
    assert word in before and word not in after


def test_the_masks_leak_as_lesson_4_says():
    case = next(c for c in steps_with(about="causal mask off"))
    step, run = step_of(case)
    checkpoint = loaded(run.name)
    base = checkpoint.run(run.sentence)
    without = truth.twin(run.name).trace(checkpoint.model, type(base)(base.texts, Masks(False)))
    following = run.base.following
    now = truth.logs(without.logits, following).sum()
    before = truth.logs(truth.twin_trace(run.name, run.sentence).logits, following).sum()
    assert now < before - 1 and step.question(run).answer == "It falls."


def test_an_induction_head_is_needed_as_lesson_2_says():
    case = steps_with(ask="still right")[0]
    step, run = step_of(case)
    assert step.question(run).answer == "almost none"
    assert placeholder(case, "right before") == placeholder(case, "repeated")


def test_an_act_in_all_heads_is_no_act_in_one():
    """The predicted share is exact only in this head alone."""
    step, run = step_of(steps_with(until="hidden {key} in this head")[0])
    question = step.question(run)
    scope, change = question.answer["changes"].split("=")
    assert not question.done({"changes": f"{scope.split('.')[0]}={change}"})
    assert question.done({"changes": f"{scope}={change}; encoder.1.1=off"})


ACTS = (
    {"changes": "cross.99.1=off"}, {"changes": 7}, {"pad_to": 10**9}, {"pad_to": "x"},
    {"beginning": "999999999"}, {"beginning": "a-b"}, {"line": ""}, {"query": [1]},
    {"query": ["a", "b"]}, {"temperature": 0}, {"seed": None}, {"seed": []},
    {"temperature": -1, "seed": 2**70}, {"width": -1},
)  # fmt: skip


@pytest.mark.parametrize("until", sorted(UNTIL))
def test_an_act_that_cannot_be_done_has_done_nothing(until):
    step, run = step_of(steps_with(until=until)[0])
    question = step.question(run)
    for act in ACTS:
        if until != "padded, masks on" or "pad_to" not in act:
            assert not question.mark(act).right, act
    with pytest.raises(ValueError, match="settings"):
        question.mark("off")


@pytest.mark.parametrize("case", steps_with(ask="weight after hiding"), ids=str)
def test_what_is_printed_gives_what_is_printed(case):
    """On each sentence of the lesson that has such a row."""
    name, number = case
    found = 0
    for model, sentence in LESSONS[name].runs():
        step, run = LESSONS[name].steps[number - 1], SentenceRun(loaded(model), model, sentence)
        with suppress(NoQuestion):
            question = step._draw(run, 0)
            said = {**question.given, **question.shown}
            second, rest = (float(said[n].rstrip("%")) for n in ("second weight", "rest"))
            assert said["answer"] == percent(second / rest), sentence
            found += 1
    assert found > 2


def test_a_row_that_nobody_painted_is_not_compared_with_a_guess():
    for case in steps_with(ask="paint"):
        step, run = step_of(case)
        question = step.question(run)
        assert "You gave" not in question.reveal_after() and question.reveal_after()
        if question.answer.ndim == 1:
            assert "You gave <1% of" in question.reveal_after(question.answer)


# Own sentences


@pytest.mark.parametrize("name", LESSONS)
def test_an_own_sentence_is_asked_about_or_told_why_not(name):
    step = LESSONS[name].steps[-1]
    own = {"induction": ("c l o u d c l o u d", "a b", "")}.get(
        opened(name).name,
        ("The small cat sleeps, and a big dog drinks water.", "Hello!", "Why?", ""),
    )
    asked = 0
    for sentence in own:
        run = SentenceRun(loaded(opened(name).name), opened(name).name, sentence)
        try:
            question = step.question(run, 0)
        except NoQuestion as error:
            assert str(error).endswith(".") and "{" not in str(error)
        else:
            asked += 1
            assert question.mark(right_answer(question)).right
    assert asked


# What `open` says


def write(tmp_path, text):
    (tmp_path / "own.md").write_text(text, encoding="utf-8")
    return load_lesson(tmp_path / "own.md")


@pytest.mark.parametrize(
    ("replaced", "by", "said"),
    [
        ("*{row}* attend", "*{key}* attend", r"own\.md:15: .*\{key\} in the text would give"),
        ("A hint.", "{luck}", r"own\.md:15: .*\{luck\} in the hint is never filled"),
        ("model: copy", "model: nowhere", "This lesson's models are all missing"),
    ],
)
def test_what_cannot_be_asked_is_refused(tmp_path, replaced, by, said):
    with pytest.raises(LessonError, match=said):
        write(tmp_path, GOOD.replace(replaced, by)).open(loaded)


def test_the_example_of_the_documentation_works(tmp_path, capsys):
    page = (ROOT / "docs" / "lessons.md").read_text(encoding="utf-8")
    lesson = write(tmp_path, re.search(r"```markdown\n(---\n.*?)```", page, re.DOTALL)[1])
    assert lesson.problem(lesson.open(loaded), loaded) is None
    assert main(["check", str(tmp_path)]) == 0
    assert "own.md" in capsys.readouterr().out


def test_the_next_sentence_is_taken_where_one_does_not_work(tmp_path):
    text = GOOD.replace("sentence: a b c d", "sentence: [a, a b c d]")
    text = text.replace("row: any", "row: sharp, crossing or sharp, late")
    lesson = write(tmp_path, text.replace("model: copy", "model: [nowhere, copy]"))
    run = lesson.open(loaded)
    assert isinstance(lesson, LiveLesson) and (run.name, run.sentence) in lesson.runs()
    assert lesson.problem(run, loaded) is None
    assert re.search(r"attend", lesson.steps[1].question(run).text)
    assert run_of("copy", "a b c d").sentence == "a b c d"


def test_every_control_that_a_lesson_names_is_on_screen():
    named = re.compile(r"(?:[Oo]pen|under|into|[Pp]ress|button) \*([^*{]+)\*")
    app = [
        path.read_text("utf-8")
        for path in (ROOT / "app").rglob("*")
        if path.suffix in (".py", ".js")
    ]
    found = {name for path in (ROOT / "app/lessons/en").glob("*.md")
             for name in named.findall(path.read_text("utf-8"))}  # fmt: skip
    assert {"Hide", "Pad to length"} <= found
    assert not [name for name in found if not any(f'"{name}' in text for text in app)]
