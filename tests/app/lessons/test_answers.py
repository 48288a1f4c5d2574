"""Files of answers are marked again, and what a file claims is not believed."""

import csv
import io
import json

import numpy as np
import pytest

from headlight.app.lessons import __main__ as command
from headlight.app.lessons import answers
from headlight.app.lessons.answers import CannotCount, Marker, answer_of, digest, seed_of, to_json
from headlight.app.lessons.lesson import load_folder
from headlight.app.lessons.question import CHOOSE, FIND, READ
from tests.app.lessons.common import loaded
from tests.app.lessons.test_lesson_files import GOOD

SESSION = 4711
LESSONS = load_folder()[0]
LESSON = LESSONS[1]  # on a small model


def marker():
    return Marker(LESSONS, loaded)


def filled(wrong=(), session=SESSION, student="Ada", lesson=LESSON):
    """The file of a student who has answered all questions, and those of `wrong` wrongly."""
    run, given = lesson.open(loaded), []
    for step in lesson.steps:
        if step.kind == READ:
            continue
        question = step.question(run, seed_of(session, lesson.name, step.number))
        answer = min(question.answer) if question.kind == FIND else question.answer
        if step.number in wrong:
            others = [c for c in question.choices if c != answer]
            answer = others[0] if question.kind == CHOOSE else -999
        given.append(answer_of(step, run, session, answer))
    return to_json(student, session, lesson, {run.name: answers.weights_of(run)}, given)


@pytest.fixture(scope="module")
def good():
    return filled()


def resealed(text, **changed):
    content = json.loads(text) | changed
    return json.dumps(content | {"digest": digest(content)})


def changed_answer(text, number=0, **changed):
    content = json.loads(text)
    content["answers"][number] |= changed
    return resealed(json.dumps(content))


def test_all_right(good):
    grade = marker().grade(good)
    asks = sum(step.kind != READ for step in LESSON.steps)
    assert (grade.asked, grade.answered, grade.right, grade.score) == (asks, asks, asks, asks)
    assert grade.student == "Ada" and not grade.misconceptions


def test_wrong_answers_are_counted_with_their_misconceptions():
    chosen = [s.number for s in LESSON.steps if s.kind == CHOOSE]
    grade = marker().grade(filled(wrong=chosen))
    assert grade.right == grade.asked - len(chosen) and grade.misconceptions


def test_show_me_does_not_count_and_the_first_attempt_does(good):
    content = json.loads(good)
    content["answers"][0]["shown"] = True
    grade = marker().grade(resealed(json.dumps(content)))
    assert grade.answered == grade.asked - 1


BAD = {  # what is done to the file → a word of the sentence
    "edited": (lambda t: t.replace("Ada", "Bob"), "edited"),
    "an answer edited": (lambda t: t.replace('"shown": false', '"shown": true', 1), "edited"),
    "a key more": (lambda t: resealed(t, grade=100), "edited"),
    "a claim": (lambda t: changed_answer(t, right=True), "edited"),
    "a number for a name": (lambda t: resealed(t, student=1), "edited"),
    "truncated": (lambda t: t[: len(t) // 2], "cut off"),
    "truncated at the end": (lambda t: t[:-2], "cut off"),
    "empty": (lambda t: "", "not an answer file"),
    "foreign": (lambda t: '{"cells": []}', "not an answer file"),
    "a list": (lambda t: "[1]", "not an answer file"),
    "no JSON": (lambda t: "<html>", "not an answer file"),
    "nested deeply": (lambda t: "[" * 100_000, "not an answer file"),
    "huge": (lambda t: " " * 2_000_000, "too large"),
    "another version": (lambda t: resealed(t, version=2), "another version"),
    "another seed": (lambda t: resealed(t, seed=12), "another seed"),
    "another lesson": (lambda t: resealed(t, lesson="1-shares"), "Step|model|question"),
    "no such lesson": (lambda t: resealed(t, lesson="x"), "no lesson"),
    "another attempt": (lambda t: changed_answer(t, attempt=2), "another seed"),
    "attempt 0": (lambda t: changed_answer(t, attempt=0), "no step"),
    "no such step": (lambda t: changed_answer(t, step=99), "no step"),
    "a step to read": (lambda t: changed_answer(t, step=1), "does not ask a question"),
    "another step": (lambda t: changed_answer(t, 1, step=7), "another seed"),
    "another model": (lambda t: changed_answer(t, model="copy"), "another model"),
    "another sentence": (lambda t: changed_answer(t, sentence="a b"), "another sentence"),
    "other weights": (lambda t: resealed(t, weights={"induction": "0"}), "another version"),
    "no weights": (lambda t: resealed(t, weights={}), "another version"),
    "no answer": (lambda t: changed_answer(t, answer="x" * 100), "no answer|not a number"),
    "an answer twice": (
        lambda t: resealed(t, answers=json.loads(t)["answers"][:1] * 2),
        "two answers given as first",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_nothing_counts_of_a_bad_file(good, case):
    change, word = BAD[case]
    text = change(good)
    assert text != good
    with pytest.raises(CannotCount, match=word) as caught:
        marker().grade(text)
    assert str(caught.value).endswith((".", "?"))


def test_a_changed_answer_is_marked_anew_even_with_a_fitting_digest(good):
    content = json.loads(good)
    number = next(n for n, a in enumerate(content["answers"]) if isinstance(a["answer"], float))
    grade = marker().grade(changed_answer(good, number, answer=-987.0))
    assert grade.right == grade.asked - 1


def test_the_report(tmp_path, good):
    (tmp_path / "good.json").write_text(good, encoding="utf-8")
    (tmp_path / "same.json").write_text(good, encoding="utf-8")
    (tmp_path / "cut.json").write_text(good[:500], encoding="utf-8")
    (tmp_path / "formula.json").write_text(filled(student="=1+1"), encoding="utf-8")
    (tmp_path / "picture.json").write_bytes(b"\x89PNG\xff")
    files = [*sorted(tmp_path.glob("*.json")), tmp_path / "nowhere.json"]
    out = io.StringIO()
    assert answers.report(files, marker(), out) == 2
    rows = {row["file"]: row for row in csv.DictReader(io.StringIO(out.getvalue()))}
    assert len(rows) == len(files)
    asked = sum(step.kind != READ for step in LESSON.steps)
    assert rows["good.json"]["right"] == str(asked) and not rows["good.json"]["problem"]
    assert rows["formula.json"]["student"] == "'=1+1"
    for name, word in {
        "same.json": "good.json",
        "cut.json": "cut off",
        "picture.json": "not an answer file",
        "nowhere.json": "cannot be read",
    }.items():
        assert word in rows[name]["problem"] and not rows[name]["right"]


def test_the_commands(tmp_path, good, capsys):
    own, out, answers_of = tmp_path / "own.md", tmp_path / "grades.csv", tmp_path / "a.json"
    (tmp_path / "empty").mkdir()
    answers_of.write_text(good, encoding="utf-8")
    own.write_text(GOOD, encoding="utf-8")
    assert command.main(["check", str(own)]) == 0
    assert "3 steps work with copy" in capsys.readouterr().out
    own.write_text(GOOD.replace("point: picture", "point: nowhere"), encoding="utf-8")
    for folder, said in ((tmp_path, f"{own}:11: "), (tmp_path / "empty", "no lessons")):
        assert command.main(["check", str(folder)]) == 1
        assert said in capsys.readouterr().err
    assert command.main(["report", str(answers_of), "--out", str(out)]) == 0
    assert "Ada" in out.read_text(encoding="utf-8")
    assert command.main(["report", str(answers_of), "--out", str(tmp_path)]) == 1


def test_painted_answers_survive_the_file_as_lists():
    step = next(s for s in LESSONS[0].steps if s.kind == "paint")
    run = LESSONS[0].open(loaded)
    kept = answer_of(step, run, 1, np.ones(len(run.src)))
    assert json.loads(json.dumps(kept.answer)) == [1.0] * len(run.src)
    assert marker().grade(filled(lesson=LESSONS[0])).right >= 10
