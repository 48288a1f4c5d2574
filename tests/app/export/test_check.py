"""A verdict on a student's part, as Python and notebooks show it."""

import pytest

from headlight import check
from headlight.app.export.check import document


def scores(q, k):
    return q @ k.transpose(-2, -1)


def scaled(q, k):
    return scores(q, k) / q.shape[-1] ** 0.5


def test_a_wrong_part_is_an_assertion_that_says_why():
    with pytest.raises(AssertionError, match="Divide it by √d") as told:
        check.scores(scores, on="en-fr")
    assert "query 1 “<s>”, key 1 “She”" in str(told.value)
    page = document(told.value.verdict)
    assert "Divide it by √d" in page and "{{" not in page.partition("<script")[0]
    assert "<iframe" in told.value.verdict._repr_html_()


def test_a_right_part_is_a_verdict():
    assert check.scores(scaled, on="en-fr") and str(check.scores(scaled)).startswith(
        "scores: right"
    )


def test_what_is_asked_for_wrongly_is_a_sentence():
    with pytest.raises(ValueError, match="There is no part 'score'; there are"):
        check.verdict("score", scores)
    with pytest.raises(AssertionError, match="an input may be None, as a mask"):
        check.softmax(lambda scores, mask: scores.masked_fill(~mask, -1e9).softmax(-1))
    with pytest.raises(AssertionError, match="Write it without softmax"):
        check.softmax(lambda scores, mask=None: scores.softmax(-1), without=["softmax"])
