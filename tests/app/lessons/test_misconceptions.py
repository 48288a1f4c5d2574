"""An answer that a misconception gives is named as such. What one gets under it is computed here,
from the numbers that the question shows or from the weights."""

from contextlib import suppress
from random import Random

import numpy as np
import pytest

from headlight.app.lessons.question_types import TYPES
from headlight.app.lessons.sentence_run import NoQuestion, names_of
from tests.app.lessons import truth
from tests.app.lessons.common import SENTENCES, drawn, run_of
from tests.app.lessons.test_questions import dot, effects, encoding, weights_of


def numbers(name):
    return lambda q, d: truth.numbers(q.given[name])


def two_vectors(q):
    values = truth.numbers(q.given["query"] + " " + q.given["key"])
    return np.array(values).reshape(2, -1)


def row_and_index(q, d):
    return weights_of(q, d), d.chosen[-1]


def rows_by_name(d):
    """Names of the rows → their place, and of the columns, as they stand on the screen."""
    count = len(weights_of(None, d))
    rows = names_of(tuple(d.run.label(d.head, i) for i in range(count)))
    return rows, names_of(d.run.keys(d.head))


def down_the_column(q, d):
    """The column that is called like the row, and the row that is largest there."""
    w, i = row_and_index(q, d)
    rows, columns = rows_by_name(d)
    if d.head.kind == "cross" or rows[i] not in columns:
        return None
    found = rows[int(w[:, columns.index(rows[i])].argmax())]
    return found if found in columns else None


def along_the_row(q, d):
    rows, _ = rows_by_name(d)
    column = q.given["column"]
    if d.head.kind == "cross" or column not in rows:
        return None
    return rows_by_name(d)[1][int(weights_of(q, d)[rows.index(column)].argmax())]


def next_column(q, d):
    rows, columns = rows_by_name(d)
    j = columns.index(q.given["column"]) + 1
    return rows[int(weights_of(q, d)[:, j].argmax())] if j < len(columns) else None


def same_column(q, d):
    return dict(enumerate(rows_by_name(d)[1])).get(d.chosen[-1])


def next_row(q, d):
    w, i = row_and_index(q, d)
    return names_of(d.run.keys(d.head))[int(w[i + 1].argmax())] if i + 1 < len(w) else None


def second(q, d):
    w, i = row_and_index(q, d)
    return float(np.sort(w[i])[-2])


def rest(q, d):
    w, i = row_and_index(q, d)
    return 1 - float(w[i].max())


def table_column(q, d):
    table = np.array(truth.numbers(q.given["table"])).reshape(3, 3)
    i, j = (int(q.given[f"{axis} number"]) - 1 for axis in ("row", "column"))
    return truth.softmax(table[:, j])[i]


def painted(change):
    def paint(q, d):
        n, real = int(q.given["length"]), int(q.given["real"])
        kind = d.keys["mask"]
        may = {"causal": lambda i, j: j <= i, "padding": lambda i, j: j < real}[kind]
        return change(np.array([[may(i, j) for j in range(n)] for i in range(n)]))

    return paint


def most_attended(q, d):
    """By the mean over all heads of cross-attention, whose words are single tokens."""
    (row,) = {v.place for v in q.veil}
    cross = truth.twin_trace(d.run.name, d.run.sentence).attention["cross"].mean(axis=(0, 1))
    names = list(effects(d.run, row))
    return names[int(cross[row][:-1].argmax())] if len(names) == len(d.run.src) - 1 else None


def not_alone(q, d):
    return next((c for c in q.choices if c != q.answer), None)


def attends_to_the_next(q, d):
    """A head of the encoder with most weight on the token after, and little on that before."""
    for layer, head in np.ndindex(d.run.base.attention["encoder"].shape[:2]):
        w = truth.weights(d.run.name, d.run.sentence, type(d.head)("encoder", layer, head))
        after = np.mean([w[i, i + 1] for i in range(len(w) - 1)])
        if after > 0.55:
            return "encoder", layer, head
    return None


CASES = {  # (type, misconception) → keys, head, kind, model, what one gets under it
    ("row", "row for column"): ({"ask": "largest key"}, "any", "", "en-de", down_the_column),
    ("row", "same place"): ({"ask": "largest key"}, "any", "", "en-de", same_column),
    ("row", "column for row"): ({"ask": "largest row"}, "any", "encoder", "en-de", along_the_row),
    ("row", "next column"): ({"ask": "largest row"}, "any", "", "en-de", next_column),
    ("row", "next row"): ({"ask": "largest key"}, "any", "", "en-de", next_row),
    ("shares", "not renormalised"): (
        {"ask": "weight after hiding"}, "any", "", "en-de", second),
    ("shares", "the rest"): ({"ask": "covered weight"}, "any", "", "en-de", rest),
    ("mask", "True for False"): (
        {"ask": "paint", "mask": "causal"}, "", "", "copy", painted(lambda m: ~m)),
    ("mask", "rows for columns"): (
        {"ask": "paint", "mask": "padding"}, "", "", "copy", painted(np.transpose)),
    ("mask", "without the diagonal"): (
        {"ask": "paint", "mask": "causal"}, "", "", "copy", painted(lambda m: np.tril(m, -1))),
    ("mask", "padding rows closed too"): (
        {"ask": "paint", "mask": "padding"}, "", "", "copy", painted(lambda m: m & m.T)),
    ("score", "√d left out"): ({"ask": "scaled"}, "", "", "copy", dot),
    ("score", "divided by d"): ({"ask": "scaled"}, "", "", "copy", lambda q, d: dot(q, d) / 4),
    ("score", "signs lost"): (
        {"ask": "dot product"}, "", "", "copy",
        lambda q, d: float(np.abs(np.prod(two_vectors(q), axis=0)).sum())),
    ("score", "entries added"): (
        {"ask": "dot product"}, "", "", "copy", lambda q, d: float(two_vectors(q).sum())),
    ("softmax", "wrong axis"): ({"ask": "table"}, "", "", "copy", table_column),
    ("softmax", "zero after the softmax"): (
        {"ask": "masked"}, "", "", "copy", lambda q, d: numbers("chosen weight")(q, d)[0]),
    ("softmax", "no effect"): (
        {"ask": "temperature"}, "", "", "copy", lambda q, d: numbers("probabilities")(q, d)[0]),
    ("softmax", "plain mean"): (
        {"ask": "mix"}, "", "", "copy", lambda q, d: float(np.mean(numbers("values")(q, d)))),
    ("shape", "rows for columns"): (
        {"ask": "cross-attention scores"}, "", "", "en-de",
        lambda q, d: f"({q.given['source length']}, {q.given['target length']})"),
    ("shape", "heads for size"): (
        {"ask": "d_head"}, "", "", "en-de", lambda q, d: d.run.base.attention["cross"].shape[1]),
    ("position", "sine and cosine swapped"): (
        {"ask": "entry"}, "", "", "copy",
        lambda q, d: encoding(int(q.given["position"]), int(q.given["dimension"]) ^ 1, 4)),
    ("position", "off by one"): (
        {"ask": "entry"}, "", "", "copy",
        lambda q, d: encoding(int(q.given["position"]) + 1, int(q.given["dimension"]), 4)),
    ("position", "farthest"): (
        {"ask": "most alike"}, "", "", "copy",
        lambda q, d: " and ".join(q.given["positions"].split(", ")[:: 4])),
    ("named head", "next token"): (
        {"ask": "find", "pattern": "previous token", "view": {"kind": "encoder"}}, "any", "",
        "en-de", attends_to_the_next),
    ("without", "attention is importance"): (
        {"ask": "most needed"}, "", "", "en-de", most_attended),
    ("next token", "greedy plans ahead"): (
        {"ask": "greedy or beam"}, "", "", "en-de", not_alone),
    ("next token", "smallest"): (
        {"ask": "product"}, "", "", "copy", lambda q, d: min(numbers("probabilities")(q, d))),
    ("next token", "vocabulary only"): (
        {"ask": "candidates"}, "", "", "copy", lambda q, d: float(q.given["size"])),
}  # fmt: skip


def is_its_own(question, name, answer):
    """Whether the answer is neither right nor that of another misconception."""

    def differs(other):
        if callable(other) or isinstance(other, set):
            return answer not in other if isinstance(other, set) else True
        if isinstance(answer, float | int | np.floating) and not isinstance(other, str):
            return abs(other - answer) > 2 * question.tolerance + 1e-6
        return not np.array_equal(other, answer)

    if question.kind == "find":
        return answer not in question.answer and all(
            differs(m.answer) for m in question.misconceptions if m.name != name
        )
    others = [m.answer for m in question.misconceptions if m.name != name]
    return all(map(differs, [question.answer, *others]))


def questions_of(case, count, kinds):
    """(question, draw) of the case, on its sentences by turns; at most six tries for each."""
    (type_name, _), (keys, head, _, model, _) = case
    for seed in range(6 * count):
        run = run_of(model, SENTENCES[model][seed % len(SENTENCES[model])])
        with suppress(NoQuestion):
            yield drawn(type_name, keys, run, seed, head, kinds[seed % len(kinds)])


def named(case, count):
    """(cases in which the answer is its own, those of them that are named)."""
    (_, name), (_, _, kind, _, mistaken) = case
    tried = hit = 0
    for question, draw in questions_of(case, count, (kind,)):
        answer = mistaken(question, draw)
        choice = question.choices and answer not in question.choices
        if answer is None or choice or not is_its_own(question, name, answer):
            continue
        mark = question.mark(answer)
        assert not mark.right
        tried += 1
        hit += mark.misconception == name and bool(mark.sentence)
        if tried == count:
            break
    return tried, hit


@pytest.mark.parametrize("count", [30, pytest.param(200, marks=pytest.mark.long)])
@pytest.mark.parametrize("case", CASES.items(), ids=lambda case: f"{case[0][0]}: {case[0][1]}")
def test_a_misconception_is_named(case, count):
    tried, hit = named(case, count)
    # A sentence has only so many tokens.
    assert tried >= (5 if count == 30 else 20) and hit >= 0.98 * tried


WRONG = [15, pytest.param(2000 // len(CASES) + 1, marks=pytest.mark.long)]


@pytest.mark.parametrize("count", WRONG)
@pytest.mark.parametrize("case", CASES.items(), ids=lambda case: f"{case[0][0]}: {case[0][1]}")
def test_no_wrong_answer_is_called_a_misconception_that_does_not_give_it(case, count):
    """Drawn at random, and judged by what is computed here alone."""
    (type_name, name), (_, _, kind, _, mistaken) = case
    kinds, chance, tried = ("encoder", "decoder", "cross"), Random(name), 0
    for question, draw in questions_of(case, count, kinds if type_name == "row" else (kind,)):
        if (answer := wrong(question, chance)) is None:
            continue
        tried += 1
        if question.mark(answer).misconception == name:
            truth = mistaken(question, draw)
            if isinstance(answer, float):
                assert truth == pytest.approx(answer, abs=2 * question.tolerance + 1e-6)
            else:
                assert np.array_equal(truth, answer), (answer, truth)
        if tried == count:
            break


def wrong(question, chance):
    """An answer of the question's kind that may be anything but right."""
    if question.kind == "choose":
        return chance.choice([c for c in question.choices if c != question.answer])
    if question.kind == "number":
        near = [m.answer for m in question.misconceptions]
        answer = chance.choice([*near, chance.uniform(-2, 2), question.answer * chance.random()])
        is_right = abs(answer - question.answer) <= 2 * question.tolerance + 1e-6
        return None if is_right else float(answer)
    if question.kind == "paint" and question.answer.ndim == 2:
        return np.array(chance.choices([True, False], k=question.answer.size)).reshape(
            question.answer.shape
        )
    return None


def test_at_least_8_types_know_misconceptions_and_all_have_a_sentence():
    assert len({name for name, _ in CASES}) >= 8
    for (type_name, name), _ in CASES.items():
        sentence = TYPES[type_name].sentences[name]
        assert sentence[0].isupper() or sentence[0] in "*√p"
        assert sentence.endswith((".", "?")) and len(sentence.split()) <= 25


def test_two_misconceptions_with_one_answer_are_not_told_apart():
    run = run_of("copy", SENTENCES["copy"][0])
    for seed in range(200):
        question, _ = drawn("softmax", {"ask": "masked"}, run, seed)
        for m in question.misconceptions:
            near = [o for o in question.misconceptions if abs(o.answer - m.answer) <= 0.01]
            assert (question.mark(m.answer).misconception == m.name) == (len(near) == 1)
