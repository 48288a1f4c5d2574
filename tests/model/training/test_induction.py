"""The shipped induction model: what its two heads do, and that the second needs the first."""

import numpy as np
import pytest

from headlight.model.checkpoint import load
from headlight.model.probing.applying import applied
from headlight.model.probing.changes import parse
from headlight.model.training import tasks
from headlight.model.training.evaluate import ends_predicted


@pytest.fixture(scope="module")
def examples():
    return tasks.task("induction").tests()["unseen"][:200]


@pytest.fixture(scope="module")
def checkpoint():
    return load("induction")


def accuracy(checkpoint, examples, line=""):
    texts, ends = map(list, zip(*examples, strict=True))
    with applied(checkpoint.model, parse(line)):
        return ends_predicted(checkpoint, texts, ends)


def heads(checkpoint, examples, score):
    """(layers, heads): mean of score(weights, length of the row) over examples."""
    found = []
    for text, row in examples[:30]:
        weights = checkpoint.trace(text).attention["decoder"]
        found.append(score(weights, len(row.split())))
    return np.mean(found, axis=0)


def induction_score(weights, length):
    """Mean weight, from the second row on, on the token behind the same one in the first row
    (Olsson et al. 2022)."""
    rows = np.arange(length + 1, 2 * length + 1)
    return weights[..., rows, rows - length + 1].mean(axis=-1)


def previous_score(weights, length):
    rows = np.arange(1, 2 * length + 1)
    return weights[..., rows, rows - 1].mean(axis=-1)


def test_it_needs_the_previous_token_heads(checkpoint, examples):
    """All of layer 1 share that work: any one of them may be missed, not all."""
    scores = heads(checkpoint, examples, previous_score)
    assert scores[0].min() > 0.4 and scores[1].max() < 0.2
    assert accuracy(checkpoint, examples, "decoder.1=off") < 0.3
    best = int(heads(checkpoint, examples, induction_score)[1].argmax())
    assert accuracy(checkpoint, examples, f"decoder.2.{best + 1}=off") < 0.3
    others = "; ".join(f"decoder.2.{i + 1}=off" for i in range(len(scores[1])) if i != best)
    assert accuracy(checkpoint, examples, others) > 0.9


def test_no_test_row_is_learned():
    task = tasks.task("induction")
    rows = {split: {row for _, row in some} for split, some in task.examples().items()}
    (tests,) = task.tests().values()
    assert not {row for _, row in tests} & (rows["train"] | rows["val"])
    assert all(text == f"{row} {row}" and len(set(row.split())) == len(row.split())
               for text, row in tests)  # fmt: skip
    assert {len(text.split()) for text, _ in task.examples()["val"]} == {40}
