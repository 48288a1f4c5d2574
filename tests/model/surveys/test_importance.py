"""What is lost without a part: against the model with hooks of the test's own."""

from contextlib import ExitStack
from itertools import combinations

import numpy as np
import pytest
import torch
from sacrebleu.metrics import BLEU

from headlight.model.probing.changes import Scope, parse
from headlight.model.probing.interventions import replace_output
from headlight.model.surveys import importance
from headlight.model.surveys.importance import (
    DRAWS,
    baseline_losses,
    decided,
    examples_of,
    losses,
    quality,
    score,
    units,
    written,
)
from headlight.model.surveys.sentences import Line
from headlight.model.training.data import DataError
from tests.model.common import hooks, load

PAIRS = [
    ("A dog runs.", "Ein Hund rennt."),
    ("Two men in red shirts are sitting on a bench.", "Zwei Männer sitzen auf einer Bank."),
    ("A girl", "Ein Mädchen"),
    ("People walk along the street at night.", "Menschen gehen nachts die Straße entlang."),
]
REVIEWS = [("a dull film", "negative"), ("a warm and funny film , well acted", "positive")]
TEXTS = {"en-de": PAIRS, "reviews": REVIEWS, "reverse": [("a b c", "c b a"), ("d e", "e d")]}


def examples(name, with_targets=True):
    checkpoint = load(name)
    lines = [
        Line(i, source, target if with_targets else None)
        for i, (source, target) in enumerate(TEXTS[name], start=1)
    ]
    return checkpoint, examples_of(checkpoint, lines)


def test_a_layer_off_is_all_its_sublayers_skipped():
    checkpoint, some = examples("en-de")
    model = checkpoint.model
    layers = [unit for unit in units(model) if unit.part == "layer"]
    sublayers = [unit for unit in units(model) if unit.part == "sublayer"]
    assert len(layers) == 8 and len(sublayers) == 20
    for unit in layers:
        layer = model.get_submodule(f"{unit.kind}.layers.{unit.layer}")
        with ExitStack() as stack:
            for sublayer in layer.sublayers:
                part = layer.get_submodule(sublayer)
                stack.enter_context(replace_output(part, torch.zeros_like))
            expected = losses(checkpoint, some)
        assert np.array_equal(losses(checkpoint, some, unit.changes), expected)


@pytest.mark.parametrize("name", TEXTS)
def test_losses_are_those_of_traces(name):
    checkpoint, some = examples(name)
    for example, (loss, count) in zip(some, losses(checkpoint, some), strict=True):
        target = None if checkpoint.classes else example.reference
        trace = checkpoint.trace(example.source, target)
        shares = torch.tensor(trace.logits).double().log_softmax(dim=-1)
        if checkpoint.classes:
            wanted = [checkpoint.classes.index(example.reference)]
        else:
            wanted = [*trace.tgt.ids[1:], checkpoint.model.config.eos_id]
        expected = -sum(float(shares[i, token]) for i, token in enumerate(wanted))
        assert count == len(wanted) and loss == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("name", ["reverse", "reviews"])
def test_baselines_are_what_changes_do_to_a_sentence_by_itself(name):
    """Each sentence has draws of its own, whatever stands beside it in the batch."""
    checkpoint, some = examples(name)
    kind = checkpoint.model.sites()[-1].kind
    found = baseline_losses(checkpoint, some, Scope(kind, 1, 0))
    for i, example in enumerate(some):
        seeds = range(DRAWS * example.number, DRAWS * (example.number + 1))
        for baseline in ("mean", "resample", "random"):
            expected = [
                losses(checkpoint, [example], parse(f"{kind}.2.1={baseline}{seed}"))[0]
                for seed in ([""] if baseline == "mean" else [f":{seed}" for seed in seeds])
            ]
            assert found[baseline][i] == pytest.approx(np.mean(expected, axis=0), abs=1e-4)
    apart = [np.abs(a[:, 0] - b[:, 0]).min() for a, b in combinations(found.values(), 2)]
    assert min(apart) > 1e-4 and hooks(checkpoint.model) == 0


def test_bleu_of_sums_is_sacrebleus():
    checkpoint, some = examples("en-de")
    plain = quality(checkpoint, some, importance.BLEU)
    texts, references = written(checkpoint, some), [e.reference for e in some]
    assert texts == [checkpoint.translate(e.source).text for e in some]
    expected = BLEU().corpus_score(texts, [references]).score
    assert score("bleu", plain.sum(axis=0)) == pytest.approx(expected, rel=1e-12)
    some_rows = plain[[0, 0, 3]].sum(axis=0)
    expected = BLEU().corpus_score([texts[i] for i in (0, 0, 3)],
                                   [[references[i] for i in (0, 0, 3)]]).score  # fmt: skip
    both = score("bleu", np.stack([some_rows, plain.sum(axis=0)]))
    assert both[0] == pytest.approx(expected, rel=1e-12) and expected > 0


@pytest.mark.parametrize(("name", "measure"), [("reviews", "accuracy"), ("reverse", "exact")])
def test_right_or_wrong(name, measure):
    checkpoint, some = examples(name)
    rows = quality(checkpoint, some, measure)
    if name == "reverse":
        expected = [checkpoint.translate(e.source).text == e.reference
                    for e in some]  # fmt: skip
    else:
        verdicts = [checkpoint.classify(e.source) for e in some]
        expected = [max(v, key=v.get) == e.reference for v, e in zip(verdicts, some, strict=True)]
    assert rows[:, 0].tolist() == expected and (rows[:, 1] == 1).all()
    assert score(measure, np.array([3, 4])) == 75


def test_without_a_target_the_models_own_is_taken():
    en_de, some = examples("en-de", with_targets=False)
    for example in some:
        assert example.reference is None
        assert example.texts[1][1:] == list(en_de.translate(example.source).ids)
    reviews, some = examples("reviews", with_targets=False)
    assert [e.label for e in some] == decided(reviews, some)


def test_what_is_no_class_is_refused():
    with pytest.raises(DataError, match="Line 2: 'fine' is not one of this model's classes"):
        examples_of(load("reviews"), [Line(1, "good", "positive"), Line(2, "good", "fine")])
