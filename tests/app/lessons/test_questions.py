"""Random questions of all types, marked as their answers, computed apart, say."""

import math
import re
from random import Random

import numpy as np
import pytest

from headlight.app.lessons.formatting import text
from headlight.app.lessons.question import numbers_in
from headlight.app.lessons.question_types import TYPES
from headlight.app.lessons.question_types.attention import row_values
from headlight.app.lessons.sentence_run import HeadRows, NoQuestion, names_of
from headlight.model.decoding.generate import Beam
from tests.app.lessons import truth
from tests.app.lessons.common import SENTENCES, drawn, run_of

ALL, TRANSLATORS = tuple(SENTENCES), ("en-de", "en-fr")
PAIRS = "en-de", "en-fr", "copy", "reverse", "sort"


def weights_of(question, draw):
    return truth.weights(draw.run.name, draw.run.sentence, draw.head)


# Each gives the number that is right, or of the choices those that are.


def largest_key(question, draw):
    row = weights_of(question, draw)[draw.chosen[-1]]
    names = names_of(draw.run.keys(draw.head))
    return {choice for choice in question.choices if row[names.index(choice)] == row.max()}


def largest_row(question, draw):
    run, head = draw.run, draw.head
    labels = names_of(tuple(run.label(head, i) for i in range(len(run.queries(head)))))
    (j,) = {v.place for v in question.veil}
    column = weights_of(question, draw)[:, j]
    return {choice for choice in question.choices if column[labels.index(choice)] == column.max()}


def predicted_token(question, draw):
    run, i = draw.run, draw.chosen[-1]
    if run.name in PAIRS:
        best = truth.twin_trace(run.name, run.sentence).logits[i].argmax()
    else:
        best = run.base.logits[i].argmax()
    return {*run.checkpoint.outputs([int(best)], [run.base.preceding[i]])}


def most_crossings(question, draw):
    links = draw.run.links
    target = names_of(draw.run.checkpoint.align(draw.run.sentence).target)
    counts = {}
    for s, t in links:
        counts[target[t]] = sum((x < s) != (y < t) for x, y in links if x != s and y != t)
    return {choice for choice in question.choices if counts[choice] == max(counts.values())}


def covered(question, draw):
    return weights_of(question, draw)[draw.chosen[-1]].max()


def hidden(question, draw):
    row = np.sort(weights_of(question, draw)[draw.chosen[-1]])
    return row[-2] / row[:-1].sum()


def dot(question, draw):
    numbers = truth.numbers(question.given["query"] + " " + question.given["key"])
    half = len(numbers) // 2
    return float(np.dot(numbers[:half], numbers[half:]))


def best_key(question, draw):
    q = truth.numbers(question.given["query"])
    dots = {choice: np.dot(q, truth.numbers(choice)) for choice in question.choices}
    return {choice for choice in dots if dots[choice] == max(dots.values())}


def of_the_head(question, draw):
    run, head, i = draw.run, draw.head, draw.chosen[-1]
    base = run.base
    q, k = base.query[head.kind][head.layer, head.head], base.key[head.kind][head.layer, head.head]
    j = int(weights_of(question, draw)[i].argmax())
    return float(q[i] @ k[j]) / math.sqrt(q.shape[-1])


def softmax_weight(question, draw):
    scores = truth.numbers(question.given["scores"])
    return truth.softmax(scores)[scores.index(float(question.given["chosen score"]))]


def softmax_table(question, draw):
    table = np.array(truth.numbers(question.given["table"])).reshape(3, 3)
    i, j = (int(question.given[f"{axis} number"]) - 1 for axis in ("row", "column"))
    return truth.softmax(table[i])[j]


def softmax_masked(question, draw):
    shares = truth.numbers(question.given["weights"])
    (masked,), (chosen,) = (truth.numbers(question.given[f"{x} weight"])
                            for x in ("masked", "chosen"))  # fmt: skip
    scores = np.log(shares)
    scores[shares.index(masked)] = -np.inf
    return truth.softmax(scores)[shares.index(chosen)]


def temperature(question, draw):
    shares = truth.numbers(question.given["probabilities"])
    return truth.softmax(np.log(shares) / float(question.given["temperature"]))[0]


def ratio(question, draw):
    row = np.sort(weights_of(question, draw)[draw.chosen[-1]].astype(float))
    return row[-1] / row[-2]


def mix(question, draw):
    shares, values = (truth.numbers(question.given[x]) for x in ("weights", "values"))
    return float(np.dot(shares, values))


def shape_scores(question, draw):
    return {str(weights_of(question, draw).shape)}


def shape_cross(question, draw):
    twin = truth.twin_trace(draw.run.name, draw.run.sentence)
    return {str(twin.attention["cross"].shape[2:])}


def encoding(position, i, d):
    """As the paper's formula has it, by complex numbers."""
    turn = np.exp(1j * position * 10_000.0 ** (-(i - i % 2) / d))
    return turn.real if i % 2 else turn.imag


def position_entry(question, draw):
    given = question.given
    return encoding(int(given["position"]), int(given["dimension"]), int(given["d"]))


def most_alike(question, draw):
    places = [int(x) for x in question.given["positions"].split(", ")]
    d = int(question.given["d"])
    table = {p: np.array([encoding(p, i, d) for i in range(d)]) for p in places}
    products = {f"{p} and {q}": table[p] @ table[q] for p in places for q in places if p < q}
    best = max(products.values())
    return {choice for choice in question.choices if products[choice] > best - 1e-9}


def which_head(question, draw):
    """The pattern's number, measured here: the mean weight below the diagonal."""

    def share(choice):
        kind, _, layer, _, head = choice.split()
        head = type(draw.head)(kind, int(layer) - 1, int(head) - 1)
        w = truth.weights(draw.run.name, draw.run.sentence, head)
        first = 2 if kind == "decoder" else 1  # a row of one key has no choice
        return np.mean([w[i, i - 1] for i in range(first, len(w))])

    shares = {choice: share(choice) for choice in question.choices}
    return {max(shares, key=shares.get)}


def written(question, draw):
    run, head = draw.run, draw.head
    i = draw.chosen[-1]
    j = int(weights_of(question, draw)[i].argmax())
    change = {
        "head off": f"{head.scope}=off",
        "key hidden": f"encoder=hide:{j + 1}; cross=hide:{j + 1}",
    }[draw.keys["change"]]
    return {text(truth.greedy(run.name, run.sentence, change)[0])}


def still_right(question, draw):
    tokens = draw.run.tgt
    trace = draw.run.checkpoint.trace(draw.run.sentence, changes=f"{draw.head.scope}=off")
    rows = [i for i in range(1, len(tokens) - 1)
            if tokens[i] in tokens[:i] and tokens[i + 1] in tokens[: i + 1]]  # fmt: skip
    best = (int(trace.logits[i].argmax()) for i in rows)
    said = draw.run.checkpoint.outputs(best, (trace.preceding[i] for i in rows))
    share = np.mean([token == tokens[i + 1] for token, i in zip(said, rows, strict=True)])
    return {"all of them" if share >= 0.9 else "almost none" if share <= 0.2 else "about half"}


def effects(run, row):
    """What hiding each source word costs the token after a row."""
    base, found = run.base, {}
    token = base.following[row]
    before = truth.logs(truth.hidden_logits(run.name, run.sentence, ())[row : row + 1], [token])
    spans, column = [], 0
    while column < len(run.src) - 1:
        end = column + 1
        while end < len(run.src) - 1 and run.src[end].startswith("·"):
            end += 1
        spans.append(range(column, end))
        column = end
    names = names_of(tuple("".join(run.src[c].strip("·") for c in span) for span in spans))
    for name, span in zip(names, spans, strict=True):
        # The removal of a word is the sum of those of its tokens.
        cost = 0.0
        for c in span:
            logits = truth.hidden_logits(run.name, run.sentence, (c,))[row : row + 1]
            cost += float(before[0] - truth.logs(logits, [token])[0])
        found[name] = cost
    return found


def most_needed(question, draw):
    (row,) = {v.place for v in question.veil}
    costs = effects(draw.run, row)
    return {max(costs, key=costs.get)}


def next_greedy(question, draw):
    tokens, probabilities = truth.greedy(draw.run.name, draw.run.sentence)
    generation = draw.run.generation()
    (i,) = {v.place for v in question.veil if v.what == "next tokens"}
    assert text(tokens[:i]) == question.given["beginning"]
    best = int(probabilities[i].argmax())
    return {*draw.run.checkpoint.outputs([best], generation.path[i - 1 : i])}


def greedy_or_beam(question, draw):
    plain = text(truth.greedy(draw.run.name, draw.run.sentence)[0])
    beam = draw.run.checkpoint.generate(draw.run.sentence, Beam(4))
    return {choice for choice in question.choices if choice != plain} & {text(beam.tokens)}


def product(question, draw):
    return math.prod(truth.numbers(question.given["probabilities"]))


def tree(question, draw):
    a, b, ac, ad, bc, bd = truth.numbers(question.given["tree"])
    paths = {"A C": a * ac, "A D": a * ad, "B C": b * bc, "B D": b * bd}
    return {max(paths, key=paths.get)}


def candidates(question, draw):
    return float(question.given["width"]) * float(question.given["size"])


def top_p(question, draw):
    (p,), total, count = truth.numbers(question.given["p"]), 0.0, 0
    for share in truth.numbers(question.given["probabilities"]):
        if total >= p - 1e-9:
            break
        total, count = total + share, count + 1
    return float(count)


def d_head(question, draw):
    return float(next(iter(draw.run.base.query.values())).shape[-1])


def allowed_in_row(question, draw):
    row = int(question.given["position"]) - 1
    first = np.count_nonzero(draw.run.base.attention["decoder"].max(axis=(0, 1))[row])
    return float(first)


def allowed_in_all(question, draw):
    n = len(draw.run.tgt)
    return float(sum(j <= i for i in range(n) for j in range(n)))


def as_booleans(question, draw):
    n, i = int(question.given["length"]), int(question.given["row number"]) - 1
    return {" ".join(str(j <= i) for j in range(n))}


def always(value):
    return lambda question, draw: value


FORMS = [  # type, keys, head, kind, models, how the right answer is computed
    ("row", {"ask": "largest key"}, "any", "", ALL, largest_key),
    ("row", {"ask": "largest row", "column": "any"}, "any", "", PAIRS, largest_row),
    ("row", {"ask": "predicted token"}, "any", "decoder", (*PAIRS, "induction"), predicted_token),
    ("row", {"ask": "most crossings"}, "", "", TRANSLATORS, most_crossings),
    ("shares", {"ask": "covered weight"}, "any", "", ALL, covered),
    ("shares", {"ask": "weight after hiding"}, "any", "", ALL, hidden),
    ("shares", {"ask": "only key"}, "any", "decoder", (*PAIRS, "induction"), always(1.0)),
    ("mask", {"ask": "row as booleans"}, "", "", ALL, as_booleans),
    ("mask", {"ask": "allowed in a row"}, "any", "decoder", (*PAIRS, "induction"), allowed_in_row),
    ("mask", {"ask": "allowed in all"}, "any", "decoder", (*PAIRS, "induction"), allowed_in_all),
    ("score", {"ask": "dot product"}, "", "", ALL, dot),
    ("score", {"ask": "scaled"}, "", "", ALL, lambda q, d: dot(q, d) / 2),
    ("score", {"ask": "best key"}, "", "", ALL, best_key),
    ("score", {"ask": "typical size"}, "", "", ALL, lambda q, d: float(q.given["d"]) ** 0.5),
    ("score", {"ask": "of the head"}, "any", "", ALL, of_the_head),
    ("softmax", {"ask": "weight"}, "", "", ALL, softmax_weight),
    ("softmax", {"ask": "table"}, "", "", ALL, softmax_table),
    ("softmax", {"ask": "masked"}, "", "", ALL, softmax_masked),
    ("softmax", {"ask": "temperature"}, "", "", ALL, temperature),
    ("softmax", {"ask": "ratio"}, "any", "", ALL, ratio),
    ("softmax", {"ask": "mix"}, "", "", ALL, mix),
    ("shape", {"ask": "d_head"}, "", "", ALL, d_head),
    ("shape", {"ask": "scores of one head"}, "any", "decoder", (*PAIRS, "induction"), shape_scores),
    ("shape", {"ask": "cross-attention scores"}, "", "", TRANSLATORS, shape_cross),
    ("position", {"ask": "entry"}, "", "", ALL, position_entry),
    ("position", {"ask": "most alike"}, "", "", ALL, most_alike),
    ("named head", {"ask": "which", "pattern": "previous token"}, "any", "", ALL, which_head),
    ("without", {"ask": "written", "change": "head off", "row": "sharp, any",
                 "against": ["key hidden", "cross-attention off"]},
     "aligns the word read", "", TRANSLATORS, written),
    ("without", {"ask": "written", "change": "key hidden", "row": "sharp, any",
                 "against": ["cross-attention off"]},
     "aligns the word read", "", TRANSLATORS, written),
    ("without", {"ask": "still right"}, "any", "decoder", ("induction",), still_right),
    ("without", {"ask": "most needed"}, "", "", TRANSLATORS, most_needed),
    ("next token", {"ask": "greedy"}, "", "", TRANSLATORS, next_greedy),
    ("next token", {"ask": "greedy or beam"}, "", "", ("en-de",), greedy_or_beam),
    ("next token", {"ask": "product"}, "", "", ALL, product),
    ("next token", {"ask": "best of a tree"}, "", "", ALL, tree),
    ("next token", {"ask": "candidates"}, "", "", ALL, candidates),
    ("next token", {"ask": "kept by top p"}, "", "", ALL, top_p),
]  # fmt: skip


COSTLY = ("written", "most needed")  # many passes a question


def verdicts(question, right):
    """(answer, whether it is right), as the answer that was computed apart says."""
    if question.choices:
        return [(choice, choice in right) for choice in question.choices]
    edge = question.tolerance
    off = 2.5 * edge + 0.001 * max(1, abs(right))
    return [(right, True), *((right + sign * off, False) for sign in (-1, 1) if
                             not question.share or 0 < right + sign * off <= 1)]  # fmt: skip


def check(form, seed):
    """Draws one question of a form; None if the run that was drawn has none."""
    name, keys, head, kind, models, right_answer = form
    rng = Random(f"{name}/{keys}/{seed}")
    model = rng.choice(models)
    run = run_of(model, rng.choice(SENTENCES[model]))
    try:
        question, draw = drawn(name, keys, run, seed, head, kind)
    except NoQuestion:
        return None
    right = right_answer(question, draw)
    if question.choices:
        assert right == {question.answer}, (form[:2], seed, right, question)
        assert question.answer in question.choices
        assert len(set(question.choices)) == len(question.choices) >= 2
    for answer, is_right in verdicts(question, right):
        mark = question.mark(answer)
        assert mark.right == is_right, (form[:2], run.sentence, seed, answer, right, question)
        assert mark.sentence and 0 <= mark.score <= 1
    return question


def questions(count):
    asked, seed = 0, 0
    while asked < count:
        for form in FORMS:
            if form[1]["ask"] in COSTLY and seed % 5:
                continue
            asked += check(form, seed) is not None
        seed += 1
        assert seed < count
    return asked


def test_questions_are_marked_as_what_was_computed_apart():
    assert questions(60) >= 60


@pytest.mark.long
def test_10_000_questions():
    assert questions(10_000) >= 10_000


def test_every_form_is_asked():
    for form in FORMS:
        assert any(check(form, seed) for seed in range(40)), form[:2]
    asked = {(name, keys["ask"]) for name, keys, *_ in FORMS}
    others = {("shares", "paint"), ("mask", "paint"), ("named head", "find"),
              ("without", "agreement")}  # fmt: skip
    names = {n: t for n, t in TYPES.items() if n not in ("statement", "act", "read")}
    assert asked | others == {(n, ask) for n, t in names.items() for ask in t.asks}


TYPED = {  # as a share; else as a number, in all ways that it may be read
    "46%": 0.46, "0.46": 0.46, "46": 0.46, ",46": 0.46, "1": 1.0, "0,125": 0.125, "12,5%": 0.125,
}, {
    "−3": [-3], "3/4": [0.75], "1,000": [1000, 1], 7: [7], "2.5e3": [2500], "-0,125": [-0.125],
    "1,250": [1250, 1.25], "1,000,000": [1e6], "1,250.5": [1250.5],
}  # fmt: skip


def test_a_number_is_read_as_students_type_it():
    shares, others = TYPED
    assert {typed: numbers_in(typed, True)[0] for typed in shares} == pytest.approx(shares)
    assert {typed: numbers_in(typed) for typed in others} == others


@pytest.mark.parametrize(
    "typed", ["", "abc", "nan", "inf", "1e999", "1/0", "1" * 50, None, "1/2/3"]
)
def test_what_is_no_number_is_said_so(typed):
    with pytest.raises(ValueError, match=r"\.$"):
        numbers_in(typed)


def test_a_painted_row_is_scored_by_its_distance():
    run = run_of("en-de", SENTENCES["en-de"][0])
    question, draw = drawn("shares", {"ask": "paint", "row": "any"}, run, 3, "best aligning")
    truth_row = weights_of(question, draw)[draw.chosen[-1]]
    assert question.mark(truth_row.tolist()).score == pytest.approx(1, abs=1e-4)
    even = [1] * len(truth_row)
    far = np.abs(np.array(even) / len(even) - truth_row).sum() / 2
    assert question.mark(even).score == pytest.approx(1 - far, abs=1e-4)
    for bad in ([0] * len(even), [-1, *even[1:]], [1], "row", [math.nan] * len(even)):
        with pytest.raises(ValueError, match=r"\.$"):
            question.mark(bad)


@pytest.mark.parametrize("kind", ["causal", "padding", "window"])
def test_a_painted_mask_is_right_cell_by_cell(kind):
    run = run_of("copy", SENTENCES["copy"][0])
    for seed in range(30):
        question, _ = drawn("mask", {"ask": "paint", "mask": kind}, run, seed)
        n, real, width = (int(question.given[x]) for x in ("length", "real", "width"))
        may = [[{"causal": j <= i, "padding": j < real, "window": i - width <= j <= i + width}[kind]
                for j in range(n)] for i in range(n)]  # fmt: skip
        assert question.mark(may).right
        may[seed % n][(seed // 2) % n] ^= True
        assert not question.mark(may).right


def test_a_head_is_found_by_its_pattern():
    run = run_of("en-de", SENTENCES["en-de"][1])
    keys = {"ask": "find", "pattern": "previous token", "view": {"kind": "encoder"}}
    question, draw = drawn("named head", keys, run, 0, "any")
    for layer, head in np.ndindex(run.base.attention["encoder"].shape[:2]):
        w = truth.weights(run.name, run.sentence, type(draw.head)("encoder", layer, head))
        share = np.mean([w[i, i - 1] for i in range(1, len(w))])
        if share > 0.5:
            assert question.mark(["encoder", layer, head]).right
        if share < 0.3:
            assert not question.mark(("encoder", layer, head)).right


def test_how_often_attention_and_removal_agree():
    run = run_of("en-de", SENTENCES["en-de"][2])
    question, _ = drawn("without", {"ask": "agreement"}, run, 0)
    cross = truth.twin_trace(run.name, run.sentence).attention["cross"].mean(axis=(0, 1))
    n, same = len(run.tgt) - 1, 0
    for row in range(n):
        costs = effects(run, row)
        if len(costs) == len(run.src) - 1:
            same += int(cross[row][:-1].argmax()) == int(np.argmax(list(costs.values())))
    few = "more than half" if same > n / 2 else "half or fewer"
    assert question.answer == ("all" if same == n else few)


def test_a_row_and_a_key_that_stand_there_twice_say_which_one_they_are():
    """By number, as choices do: “a (4)” is not “a (1)”."""
    run = run_of("induction", "a b c a b")
    head = run.head("induction")
    tokens = run.tgt
    for i in range(len(tokens)):
        given, shown = row_values(run, head, i)
        key = int(run.weights(head)[i].argmax())
        for name, words, place in (("row", given["row"], i), ("key", shown["key"], key)):
            twice = tokens.count(tokens[place]) > 1
            assert words == (f"{tokens[place]} ({place + 1})" if twice else tokens[place]), name
    assert len({row_values(run, head, i)[0]["row"] for i in range(len(tokens))}) == len(tokens)


def test_what_is_written_without_its_key_is_a_word_after_the_first():
    run = run_of("en-fr", SENTENCES["en-fr"][0])
    head = run.head("aligns the word read")
    weights = truth.weights(run.name, run.sentence, head)
    both = [*enumerate(zip(run.tgt, [*run.tgt[1:], ""], strict=True))][1:]
    words = [i for i, (a, b) in both if re.fullmatch(r"\w+", a) and not b.startswith("·")]

    def remains(i):
        hidden = run.hide(int(weights[i].argmax()))
        before, after = (by.log_probabilities[i - 1] for by in (run, run.trace(hidden)))
        return run.tgt[i] in run.written(hidden) and after - before < math.log(0.7)

    found = HeadRows(run, head).fitting("written without its key")
    assert found and found == [i for i in words if remains(i)]
