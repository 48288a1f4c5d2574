import numpy as np
import pytest

from headlight.model.analysis.attribution import Attribution, attribution
from headlight.model.analysis.statistics import spearman
from headlight.model.probing.capture import view
from headlight.model.probing.trace import read_of
from headlight.model.surveys import trust
from headlight.model.surveys.importance import Example, examples_of
from headlight.model.surveys.sentences import Line
from headlight.model.surveys.trust import PAIRS, correlations
from tests.model.common import in_short, load


@pytest.mark.parametrize("name", in_short(["en-de", "reviews"], "reviews"))
def test_correlations_are_of_one_prediction_of_each_sentence(name):
    checkpoint = load(name)
    lines = [
        Line(1, "A man in a red shirt rides a brown horse.", None),
        Line(2, "too short", None),
        Line(3, "another sentence that nobody has asked about", None),
    ]
    found = correlations(checkpoint, examples_of(checkpoint, lines), 2)
    assert found.shape == (3, len(PAIRS)) and np.isnan(found[1:]).all()
    run = checkpoint.run(lines[0].source)
    rows = [0] if checkpoint.classes else range(len(run.texts[1].ids) + 1)
    possible = []
    for row in rows:
        token = checkpoint.trace_run(run).logits[row].argmax()
        values = attribution(view(checkpoint.model), run, row, int(token)).values
        possible.append([spearman(*(np.abs(values[name]) for name in pair)) for pair in PAIRS])
    assert np.abs(found[0] - possible).max(axis=1).min() <= 1e-6


def test_the_model_reads_the_ids_of_the_example(monkeypatch):
    """Those of special tokens that stand inside a text as well."""
    checkpoint, runs = load("en-de"), []

    def examined(model, run, row, token):
        runs.append(run)
        return Attribution((), {})

    monkeypatch.setattr(trust, "attribution", examined)
    example = Example(1, "", ([50, 1, 60, 2], [1, 70, 2, 80, 2]), None, None)
    correlations(checkpoint, [example], 1)
    (read,) = (read_of(checkpoint.model, run).values() for run in runs)
    assert [list(text.ids) for text in read] == list(example.texts)
