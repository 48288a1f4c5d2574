"""Laws of the checks of a student's parts."""

from itertools import combinations

import pytest
import torch

from headlight import check
from headlight.model.checking.calling import Outcome, said
from headlight.model.checking.part import Case, same
from headlight.model.checking.parts import CACHED_STEP, MULTI, PARTS
from headlight.model.checking.verdict import judged


def repr_of_type(value):
    return type(value).__name__


PLAIN = [p for p in PARTS.values() if p not in (MULTI, CACHED_STEP)]
ALL = [(p, m) for p in PLAIN for m in p.mistakes]


def student(part, mistakes=()):
    """Somebody who has these misconceptions."""
    swaps = {step: swap for m in mistakes for step, swap in m.swaps.items()}

    def function(*inputs):
        return part.run(Case("", dict(zip(part.takes, inputs, strict=True))), swaps)[part.result]

    return function


def whole(part):
    return [i for i, c in enumerate(part.drawn) if not c.edge]


@pytest.mark.parametrize("part", PLAIN, ids=lambda p: p.name)
def test_our_own_is_right(part):
    verdict = judged(part, student(part), numpy=False)
    assert verdict.ok and not verdict.notes and verdict.difference == 0


@pytest.mark.parametrize(("part", "mistake"), ALL, ids=lambda x: x.name)
def test_each_misconception_is_named_and_no_other(part, mistake):
    verdict = judged(part, student(part, [mistake]), numpy=False)
    names = [n for n, _ in verdict.notes] if mistake.note else [verdict.name]
    fails = all(isinstance(part.under([mistake])[i], Exception) for i in whole(part))
    assert verdict.ok == mistake.note
    assert names == (["exception"] if fails else [mistake.name])
    assert fails or mistake.sentence in str(verdict)


@pytest.mark.parametrize("part", PARTS.values(), ids=lambda p: p.name)
def test_no_two_misconceptions_give_the_same(part):
    counted = [(m, a) for m, a in part.alone() if not m.note]
    for (one, a), (two, b) in combinations(counted, 2):
        alike = all(same(a[i], b[i], part.loose) for i in whole(part))
        assert not alike or one.name == two.name or isinstance(a[whole(part)[0]], Exception)


@pytest.mark.parametrize("part", PARTS.values(), ids=lambda p: p.name)
def test_no_misconception_is_right(part):
    for m, answers in part.alone():
        rights = [r[part.result] for r in part.right()]
        cases = range(len(part.drawn)) if m.note else whole(part)
        assert not all(same(answers[i], rights[i], part.loose) for i in cases), m.name


@pytest.mark.long
@pytest.mark.parametrize("part", [p for p in PLAIN if p.name != "attention"], ids=lambda p: p.name)
def test_two_at_once_are_named_both_or_not_at_all(part):
    for one, two in [*part.pairs()][::7]:
        verdict = judged(part, student(part, [one, two]), numpy=False)
        both = {f"{one.name} and {two.name}", f"{two.name} and {one.name}"}
        # One may hide the other: then it is the one that is seen.
        hidden = {
            m.name for m in part.mistakes for alone in (part.under([m]), *part.noted([m]))
            if all(same(alone[i], part.under([one, two])[i], part.loose) for i in whole(part))
        }  # fmt: skip
        other = {"", "exception", "shape", "type", "size written into the code"}
        twins = {
            f"{a.name} and {b.name}" for a, b in part.pairs()
            if all(same(part.under([a, b])[i], part.under([one, two])[i], part.loose)
                   for i in whole(part))
        } if verdict.name not in both | hidden | other else set()  # fmt: skip
        assert verdict.ok or verdict.name in both | hidden | other | twins


def test_inputs_are_never_ours():
    """What a student does to an input reaches no other case, and no other student."""
    part = PARTS["attention"]
    before = [c.inputs["q"].clone() for c in part.drawn]

    def greedy_hands(q, k, v, mask=None):
        q.zero_(), k.zero_()
        return v[..., :1, :].expand(-1, -1, q.shape[2], -1)

    judged(part, greedy_hands)
    assert all(torch.equal(a, c.inputs["q"]) for a, c in zip(before, part.drawn, strict=True))


def test_a_wrong_part_raises_with_its_sentence():
    with pytest.raises(AssertionError, match="Divide it by √d"):
        check.scores(lambda q, k: q @ k.transpose(-2, -1))
    assert check.scores(lambda q, k: q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5)


def no_keepdim(x, gain, bias):
    return (x - x.mean(-1)) / x.std(-1) * gain + bias


def out_in(x, w1, b1, w2, b2):
    return (x @ w1 + b1).relu() @ w2 + b2


def sampled(logits, bos, eos, most):
    return [int(torch.multinomial(torch.ones(9), 1)) for _ in range(most)]


@pytest.mark.parametrize(("part", "function", "sentence"), [
    ("layer_norm", no_keepdim, "keepdim=True keeps it"),
    ("feed_forward", out_in, "multiply by its transpose, x @ w.T"),
    ("greedy", sampled, "Greedy decoding takes the largest logit"),
])  # fmt: skip
def test_a_frequent_error_comes_with_its_remedy(part, function, sentence):
    assert sentence in check.verdict(part, function).sentence


@pytest.mark.parametrize(("part", "value", "kind"), [
    ("scores", object(), "a value of type object"), ("scores", (), "a value of type tuple"),
    ("scores", torch.ones(2).cfloat(), "complex numbers"),
    ("scores", torch.nested.nested_tensor([torch.ones(2)]), "an odd kind of tensor"),
    ("greedy", [object()], "a list of other things"), ("greedy", torch.ones(3, 3), "a value of "),
])  # fmt: skip
def test_what_is_no_number_is_said_to_be_none(part, value, kind):
    verdict = check.verdict(part, lambda *inputs: value)
    assert verdict.name == "type" and verdict.sentence.startswith(f"It returns {kind}")


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError


@pytest.mark.parametrize("error", [
    MemoryError(), RuntimeError("can't allocate memory"), ValueError("a\0b\x1b[2J"), SyntaxError(),
    SyntaxError("source code string cannot contain null bytes"), Unspeakable(), ImportError(),
    TypeError("NoneType"), RuntimeError("shapes cannot be multiplied (1x2 and 3x4)"),
    RuntimeError("The size of tensor a (1) must match the size of tensor b (2)"),
    RuntimeError("- with a bool tensor is not supported"),
], ids=repr_of_type)  # fmt: skip
def test_an_exception_without_a_line_is_a_plain_sentence(error):
    sentence = said(Outcome(error=error))
    assert sentence[0].isupper() and sentence[-1] == "."
    assert sentence.isprintable() and " ()" not in sentence and ". ." not in sentence


def test_two_numbers_that_differ_look_different():
    """Weights of 4.5e-5 on hidden keys change the output in its fifth digit."""

    def attention(q, k, v, mask=None):
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        return (scores if mask is None else scores.masked_fill(~mask, -9.0)).softmax(-1) @ v

    yours, _, right = (
        str(check.verdict("attention", attention)).partition("yours ")[2].partition(", right ")
    )
    assert yours != right.rstrip(".")
