"""A lesson in a live page: its questions and marks against the app's."""

import itertools
import re
from functools import cache, partial

import numpy as np
import pytest

from headlight.app.lessons.question import CHOOSE, DO, FIND, NUMBER, READ
from headlight.app.lessons.sentence_run import NoQuestion, SentenceRun
from headlight.app.live import lesson as live_lesson
from headlight.app.live.build import page
from headlight.model.checkpoint import load
from headlight.model.masks import Masks
from tests.javascript.test_live import ask, sentences

LESSONS = live_lesson.CARRIED
TRAINED = {"masks": vars(Masks()), "changes": "", "padTo": 0, "beam": 1, "target": ""}


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


def used(*texts):
    """Placeholders of the lesson's texts."""
    return {name for text in texts for name in re.findall(r"\{([^{}]+)\}", text)}


@pytest.mark.parametrize("name", LESSONS)
def test_questions_and_marks_are_those_of_the_app(node, tmp_path, name):
    """Over the lesson's sentences and others, and seeds: in these lessons a seed only shuffles."""
    lesson, model = live_lesson.find(name), LESSONS[name]
    checkpoint, file = load(model), tmp_path / "page.html"
    whole = live_lesson.carried(lesson, model, cache(load))
    file.write_text(page(model, carried=whole), encoding="utf-8")
    answer = partial(ask, node.scope("tests/javascript/pages.mjs"), file)
    steps, texts = whole["steps"], [whole["sentence"]]
    compared = marks = 0
    if name == "shares":  # in others the head depends on the sentence
        texts = [text for _, text in lesson.runs()] + sentences(model, 3)
    runs = [SentenceRun(checkpoint, model, text) for text in texts]
    pairs = [*enumerate(zip(lesson.steps, steps, strict=True), 1)]
    for run, (number, (step, carried)) in itertools.product(runs, pairs):
        if not carried["carried"]:
            continue
        got = answer("question", source=run.sentence, step=number, **TRAINED)
        expected, where = asked(step, run), (run.sentence, number)
        if isinstance(expected, dict) or "problem" in got:
            assert got == expected, where
            continue
        assert got["kind"] == expected.kind
        theirs, mine = run.common | dict(expected.given), {**run.common, **got["given"]}
        known = used(step.source.text, step.source.parts.get("Hint", ""))
        assert {k: theirs[k] for k in known} == {k: mine[k] for k in known}, where
        theirs, mine = theirs | dict(expected.shown), mine | got["shown"]
        known = used(step.source.parts.get("Reveal", ""))
        assert {k: theirs[k] for k in known} == {k: mine[k] for k in known}, where
        compared += 1
        if expected.kind in (READ, DO):
            continue
        if expected.kind == CHOOSE:
            for again in (asked(step, run, seed) for seed in range(3)):
                assert (again.answer, {*again.choices}) == (got["answer"], {*got["choices"]})
        elif expected.kind == NUMBER:
            assert got["answer"] == pytest.approx(expected.answer, abs=1e-5)
        elif expected.kind == FIND:
            assert set(got["answer"]) == {f"{k} {x} {y}" for k, x, y in expected.answer}
        (veil,) = expected.veil
        if expected.kind != FIND:
            place = {k: v for k, v in vars(veil).items() if k != "what"}
            assert place.items() <= got["veil"][0].items()
        for given, typed in answers_to(expected, run):
            marked = answer("mark", question=got, answer=typed)
            try:
                mark = expected.mark(given)
            except ValueError:
                assert "error" in marked, typed
                continue
            found = marked["right"], marked["misconception"]
            assert found == (mark.right, mark.misconception), (where, typed)
            marks += 1
    print(f"{name}: {compared} questions, {marks} marks")
    assert compared == len(texts) * sum(step["carried"] for step in steps) or name == "shares"
    assert compared > 1 and marks
