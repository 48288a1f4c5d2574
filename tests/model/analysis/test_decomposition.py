"""The logit of a token as a sum: it adds up, and each term is what a hand's computation gives."""

import numpy as np
import pytest
import torch

from headlight.model.analysis.decomposition import (
    BIASES,
    HEAD,
    POSITION,
    SUBLAYERS,
    TOKEN,
    Term,
    carried,
    decomposition,
)
from headlight.model.presets import PRESETS
from headlight.model.probing.applying import PatchInputs
from headlight.model.probing.changes import CannotChange, parse
from headlight.model.probing.patching import recorded
from headlight.model.probing.run import Run
from headlight.model.probing.sites import predicted_side
from headlight.model.probing.trace import CannotRead, trace
from tests.devices import here
from tests.model.analysis.test_streams import made, recorded_by_hand, stream_by_hand
from tests.model.common import encoding, load, random_ids, random_model

FEED_FORWARD = SUBLAYERS["feed_forward"]
CHANCE = torch.Generator().manual_seed(0)
TEXTS = encoding(random_ids(6, generator=CHANCE)), encoding(random_ids(5, generator=CHANCE))


def run_of(model, changes="", **options):
    return Run(TEXTS[: len(model.sides())], changes=parse(changes), **options)


def expect_sum(model, run, row, token, against=None, given=PatchInputs(), tolerance=1e-4):
    found = decomposition(model, run, row, token, against, given)
    logits = trace(model, run, given).logits[row]  # or log-probabilities
    if against is not None:
        assert found.logit == pytest.approx(logits[token] - logits[against], abs=1e-4)
    largest = np.abs(found.values).max()
    assert abs(found.values.sum() - found.logit) <= tolerance * max(1, largest)
    assert not found.values.flags.writeable and len(found.terms) == len(found.values)
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("preset", PRESETS)
def test_terms_add_up_to_the_logit(preset, dtype):
    model = random_model(preset).to(dtype)
    tolerance = 1e-4 if dtype == torch.float32 else 1e-10
    for pad_to in (0, 9):
        run = run_of(model, pad_to=pad_to)
        expect_sum(model, run, 0, 1, tolerance=tolerance)
        expect_sum(model, run, 0, 1, 0, tolerance=tolerance)
    if predicted_side(model).predicts == "next token":
        found = expect_sum(model, run_of(model), 3, 7, tolerance=tolerance)
        n_heads = sum(site.n_heads for site in model.sites() if site.query_side == "tgt")
        layers = len(predicted_side(model).layers)
        whats = [term.what for term in found.terms]
        assert whats[:2] == [TOKEN, POSITION] and whats[-1] == BIASES
        assert whats.count(HEAD) == n_heads and whats.count(FEED_FORWARD) == layers
        assert len(set(found.terms)) == len(found.terms)
    found = decomposition(model, run, 0, 1, 0)
    for term, value in zip(found.terms, found.values, strict=True):
        if term.what == HEAD:
            keys = carried(model, run, 0, 1, term, 0)
            assert keys.values.sum() == pytest.approx(value, abs=1e-4) and len(keys.weights)


@pytest.mark.parametrize(
    "line",
    [
        "decoder.1.2=off",
        "cross.2=skip; decoder_feed_forward.1=skip",
        "cross=hide:2; decoder.1=temperature:2.0",
        "target=positions:none",
        "cross.1=patch; decoder_feed_forward.2=patch:2",
    ],
)
@pytest.mark.parametrize("preset", ["paper", "pre_norm", "annotated"])
def test_changes_of_the_run_are_in_the_terms(preset, line):
    model = random_model(preset)
    other = Run((encoding(random_ids(6, generator=CHANCE)), TEXTS[1]))
    given = PatchInputs(other=recorded(model, other))
    found = expect_sum(model, run_of(model, line), 2, 5, 9, given)
    if "skip" in line:
        assert not any(term.kind == "cross" and term.layer == 1 for term in found.terms)
    first, value = found.largest(1)[0]
    assert value == max(found.values, key=abs) and first.what


def test_what_no_sum_tells_is_refused():
    model = random_model("paper")
    given = PatchInputs(other=recorded(model, run_of(model)))
    with pytest.raises(CannotChange, match="cannot be split into contributions"):
        decomposition(model, run_of(model, "decoder_residual.2=patch"), 0, 1, given=given)

    with pytest.raises(CannotRead, match="its keys do not add up"):
        carried(model, run_of(model, "cross.2.1=off"), 0, 1, Term(HEAD, "cross", 1, 0))
    with pytest.raises(CannotRead, match="not a head that adds"):
        carried(model, run_of(model), 0, 1, Term(HEAD, "encoder", 1, 0))

    class Twice(torch.nn.LayerNorm):
        def forward(self, x):
            return super().forward(x) + x.tanh()

    model.decoder.layers[1].norm2 = here(Twice(model.config.d_model))
    with pytest.raises(CannotRead, match="do not add up"):
        decomposition(model, run_of(model), 0, 1)


@pytest.mark.parametrize("name", ["paper", "pre_norm", "gpt2", "llama grouped"])
def test_terms_are_those_of_a_computation_by_hand(name):
    """Every vector by itself through all norms behind it, and each key's share of a head."""
    model, run = made(name)
    row, token, seen = 3, 11, recorded_by_hand(model, run)
    parts, _ = stream_by_hand(model, seen, predicted_side(model), "")
    direction = model.generator.weight[token].double()
    expected = [float(part[row] @ direction) for part in parts.values()]
    found = decomposition(model, run, row, token)
    assert np.abs(found.values[:-1] - expected).max() <= 1e-10
    for term, value in zip(found.terms, found.values, strict=True):
        if term.what == HEAD and term.layer:
            keys = carried(model, run, row, token, term)
            site = next(s for s in model.sites() if (s.kind, s.layer) == (term.kind, term.layer))
            weights = seen[f"{site.name}.softmax"][1][0, term.head, row]
            assert keys.values.sum() == pytest.approx(value, abs=1e-6)
            np.testing.assert_allclose(keys.weights, weights)


def test_of_a_checkpoint_with_a_run_that_patches():
    en_de = load("en-de")
    other = en_de.run("A woman sleeps.", "Ein Mann schläft.")
    run = en_de.run("A man sleeps.", "Ein Mann schläft.", changes="cross.3=patch", other=other)
    row, (token, against) = 1, run.texts[1].ids[1:3]
    found = en_de.decomposition(run, row, token, against)
    logits = en_de.trace_run(run).logits[row]
    assert found.logit == pytest.approx(logits[token] - logits[against], abs=1e-4)
    values = en_de.attribution(run, row, token).values
    assert values["attention"].sum() <= 1 and len(values) == 5
