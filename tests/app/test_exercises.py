"""Exercises: each has an answer, and what an answer says of a model and a text is so, computed by
other means."""

import random
import re

import numpy as np
import pytest

from headlight.app.state.options import STEPS
from headlight.app.text import exercises
from headlight.app.views import inside_a_head
from headlight.model import load
from headlight.model.probing.head_steps import head_steps

TEXT = "A little girl climbs a wooden playhouse."
NAME = "en-fr"
VIEWS = [
    *({"view": "inside", "at": step} for step in STEPS),
    {"view": "lineage"},
    *({"view": view} for view in ("tokenizer", "lookup", "bertviz")),
]


def told(page) -> list[tuple[str, str]]:
    """The tasks of a page and their answers."""
    return [
        (box.label, "".join(text.value for text in box.markdown))
        for box in page.expander
        if box.label.startswith("**Try:** ")
    ]


@pytest.fixture
def answer(page):
    """Opens a view, and gives the answer to its exercise."""

    def answer(view, model=NAME, **chosen):
        page.query_params.update(model=model, source=TEXT, **chosen)
        page.switch_page(view).run()
        assert not page.exception
        (found,) = told(page)
        return found[1]

    return answer


@pytest.fixture(scope="module")
def checkpoint():
    return load(NAME)


@pytest.fixture(scope="module")
def trace(checkpoint):
    return checkpoint.trace(TEXT)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: "-".join(view.values()))
def test_every_exercise_has_an_answer(answer, page, view):
    assert len(answer(**view)) > 20
    others = [text.value for text in (*page.markdown, *page.caption) if "Try:" in text.value]
    assert not others


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_what_is_left_out_of_a_head(checkpoint, trace):
    run, model = trace.run, checkpoint.model
    site = trace.kinds["decoder"][1]
    steps = head_steps(model, run, site, 2)
    keys = trace.texts_of("decoder")[1].tokens

    def exercise(name):
        return inside_a_head.exercise_of_step(name, steps, keys, 3)

    def answer(name):
        return exercise(name).answer

    (width, wide), heads = (part.shape[1] for part in (steps.q, steps.residual)), site.n_heads
    numbers = map(str, (width, wide, heads, heads, width, heads * width))
    assert re.findall(r"\d+", answer("Projections")) == [*numbers]
    assert "fewer" in exercise("Projections").task
    assert "fewer" not in exercises.size_of_query(wide, 1, wide).task
    unscaled = softmax(np.where(steps.mask, steps.scores, -np.inf))
    largest = (weights.max(axis=1).mean() for weights in (unscaled, steps.weights))
    assert "is {:.0%} on average, and {:.0%} with".format(*largest) in answer("Softmax")
    share = np.where(steps.mask, 0, softmax(steps.scaled)).sum(axis=1).mean()
    assert answer("Mask").startswith(f"{share:.0%} of a row's weight")
    order = np.argsort(steps.scores[3])
    largest, least = (f"{steps.scores[3][at]:.2f}".replace("-", "−") for at in order[[-1, 0]])
    best, said = keys[order[-1]], answer("Scores")
    assert said.startswith(f"“{best}” has {largest}, “") and f"” {least}. On" in said
    assert (order == np.argsort(steps.scaled[3])).all()  # as “Scaling” says
    best = keys[int(steps.weights[3].argmax())]
    assert f"{steps.weights[3].max():.0%} on “{best}”" in answer("Values")


@pytest.mark.parametrize("side", ["source", "target"])
def test_without_positions_sorting_fails_more_often_where_letters_repeat(side):
    own, letters = load("sort"), random.Random(1)
    lengths = [letters.randint(5, 7) for _ in range(40)]
    distinct = [letters.sample("abcdefg", k=length) for length in lengths]
    repeated = [letters.choices("abcdefg", k=length) for length in lengths]

    def wrong(texts, changes=""):
        found = [own.translate(" ".join(text), changes=changes).ids for text in texts]
        written = [own.tokenizer.target.decode(ids).split() for ids in found]
        return sum(out != sorted(text) for out, text in zip(written, texts, strict=True))

    without = f"{side}=positions:none"
    assert wrong(distinct) == wrong(repeated) == 0
    assert 0 < wrong(distinct, without) < wrong(repeated, without)
