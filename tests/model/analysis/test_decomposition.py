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
from headlight.model.probing.capture import view
from headlight.model.probing.changes import CannotChange, parse
from headlight.model.probing.patching import recorded
from headlight.model.probing.run import Run
from headlight.model.probing.sites import has_final_norm, predicted_side
from headlight.model.probing.trace import CannotRead, trace
from tests.devices import here
from tests.model.common import CHECKPOINTS, encoding, load, random_ids, random_model

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


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda path: path.name)
def test_of_shipped_models(path):
    checkpoint = load(path)
    run = checkpoint.run("a man in a red shirt")
    model = view(checkpoint.model)
    expect_sum(model, run, 0, 1, 0)
    first, value = expect_sum(model, run, 0, 1).largest(1)[0]
    assert value == max(decomposition(model, run, 0, 1).values, key=abs) and first.what


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
    values = dict(zip(found.terms, found.values, strict=True))
    off = {
        "decoder.1.2=off": lambda t: (t.what, t.kind, t.layer, t.head) == (HEAD, "decoder", 0, 1),
        "target=positions:none": lambda t: t.what == POSITION,
    }.get(line)
    if off:
        assert [value for term, value in values.items() if off(term)] == [0]
    if "skip" in line:
        assert not any(term.kind == "cross" and term.layer == 1 for term in values)
        assert next(v for t, v in values.items() if t.what == FEED_FORWARD) == 0


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


@pytest.mark.parametrize("preset", ["paper", "pre_norm"])
def test_each_term_against_its_way_through_the_norms(preset):
    """Forwards: every vector by itself through all norms behind it, their scales taken from the
    formula."""
    model = random_model(preset).double()
    run, row, token = run_of(model), 3, 11
    outputs, inputs = {}, {}

    def record(name):
        def hook(module, arguments, output):
            inputs[name], outputs[name] = arguments, output

        return hook

    for name, module in model.named_modules():
        module.register_forward_hook(record(name))
    found = decomposition(model, run, row, token)

    def frozen(name, vector):
        norm, x = model.get_submodule(name), inputs[name][0][0, row]
        scale = (x.var(unbiased=False) + norm.eps) ** -0.5
        return norm.weight * (vector - vector.mean()) * scale

    def to_the_logit(vector, norms):
        for name in norms:
            vector = frozen(name, vector)
        return float(model.generator.weight[token] @ vector)

    pre = has_final_norm(model, predicted_side(model))
    names = ("self_attn", "norm1"), ("cross_attn", "norm2"), ("feed_forward", "norm3")
    order = [
        (f"decoder.layers.{i}.{name}", f"decoder.layers.{i}.{norm}")
        for i in range(3)
        for name, norm in names
    ]
    behind = [[n for _, n in order[i:]] if not pre else ["decoder.norm"] for i in range(len(order))]
    everything = behind[0]
    expected = [
        to_the_logit(outputs["tgt_embedding.token"][0, row], everything),
        to_the_logit(outputs["tgt_embedding.position"][row], everything),
    ]
    for (name, _), norms in zip(order, behind, strict=True):
        if name.endswith("feed_forward"):
            expected.append(to_the_logit(outputs[name][0, row], norms))
            continue
        projection = model.get_submodule(name).output
        heads = inputs[f"{name}.output"][0][0, row].view(4, -1)
        for head in range(4):
            alone = torch.zeros_like(heads)
            alone[head] = heads[head]
            expected.append(to_the_logit(projection.weight @ alone.flatten(), norms))
            kind, layer = "cross" if "cross" in name else "decoder", int(name.split(".")[2])
            keys = carried(model, run, row, token, Term(HEAD, kind, layer, head))
            weights = outputs[f"{name}.softmax"][0, head, row]
            values = outputs[f"{name}.value"][0].unflatten(-1, (4, -1))[:, head]
            for key, given in enumerate(keys.values):
                alone[head] = weights[key] * values[key]
                by_hand = to_the_logit(projection.weight @ alone.flatten(), norms)
                assert abs(given - by_hand) <= 1e-6, (name, head, key)
            assert np.allclose(keys.weights, weights)
    assert np.abs(found.values[:-1] - expected).max() <= 1e-10


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
