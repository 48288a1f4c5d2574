"""Weights of models that run in their own code, against what they say of themselves."""

import numpy as np
import pytest
import torch
import transformers as tf

from headlight.model import record
from headlight.model.recording.weights import CannotRecord
from tests.model.recording.models import (
    ALL,
    SHORT,
    SINKS,
    THEIRS,
    Own,
    eager,
    in_part,
    inputs_of,
    model_of,
    named,
)


@pytest.mark.parametrize("name", named(ALL, SHORT))
def test_weights_are_those_of_output_attentions(name):
    model, inputs = model_of(name), inputs_of(name)
    recorded = record(model, inputs=inputs)
    with torch.no_grad():
        output = eager(model)(**inputs, output_attentions=True)
    found = 0
    for key in THEIRS:
        if not (layers := output.get(key)):
            continue
        theirs = np.stack([layer[0].numpy() for layer in layers])
        kind = key.removesuffix("_attentions")
        mine = recorded.attention[
            kind if kind in recorded.attention else next(iter(recorded.attention))
        ]
        assert mine.shape == theirs.shape
        assert np.abs(mine - theirs).max() <= 1e-6
        found += 1
    assert found == len(recorded.attention)


@pytest.mark.parametrize("name", named(ALL, SHORT))
def test_rows_add_up(name):
    for weights in record(model_of(name), inputs=inputs_of(name)).attention.values():
        sums = weights.sum(axis=-1)
        assert (weights >= 0).all() and sums.max() <= 1 + 1e-5
        assert name in SINKS or sums.min() >= 1 - 1e-5


@pytest.mark.parametrize("name", ["bert", "llama", "bart"])
def test_weights_do_not_depend_on_the_implementation_that_was_set(name):
    model, inputs = model_of(name), inputs_of(name)
    first = record(model, inputs=inputs).attention
    model.set_attn_implementation("eager")
    again = record(model, inputs=inputs).attention
    assert all(np.array_equal(first[kind], again[kind]) for kind in first)


def test_padding_has_no_weight():
    model, inputs = model_of("bert"), inputs_of("bert")
    inputs["attention_mask"][0, -3:] = 0
    weights = record(model, inputs=inputs).attention["encoder"]
    assert (weights[..., -3:] == 0).all()


def test_a_decoder_never_attends_ahead():
    """Without a mask of its own in the second table, a function is called without any."""
    weights = record(model_of("llama"), inputs=inputs_of("llama")).attention["decoder"]
    assert (np.triu(weights, 1) == 0).all()


def test_modules_of_torch():
    model = in_part(Own())
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(1, 5, 16, generator=random), torch.randn(1, 4, 16, generator=random)
    modules = [(n, m.training) for n, m in model.named_modules()]
    recorded = record(model, inputs=inputs)
    assert [(n, m.training) for n, m in model.named_modules()] == modules
    shapes = {kind: w.shape for kind, w in recorded.attention.items()}
    assert shapes == {"encoder": (2, 4, 5, 5), "decoder": (2, 4, 4, 4), "cross": (2, 4, 4, 5)}
    for weights in recorded.attention.values():
        assert np.abs(weights.sum(axis=-1) - 1).max() < 1e-5
    first = model.transformer.encoder.layers[0].self_attn.eval()
    with torch.no_grad():
        _, expected = first(*[inputs[0]] * 3, need_weights=True, average_attn_weights=False)
    assert np.abs(recorded.attention["encoder"][0] - expected[0].numpy()).max() < 1e-6


def test_what_has_no_attention_says_so():
    model = tf.MambaForCausalLM(tf.MambaConfig(vocab_size=97, hidden_size=32, num_hidden_layers=2))
    with pytest.raises(CannotRecord, match=r"No attention of MambaForCausalLM was called"):
        record(model, text=[3, 4, 5])


def test_a_path_that_is_chosen_by_the_name_eager_is_taken():
    """GPT-2 computes its scores in another order there, which does not ask the table."""
    plain, model = model_of("gpt2"), model_of("gpt2")
    for module in model.modules():
        if hasattr(module, "reorder_and_upcast_attn"):
            module.reorder_and_upcast_attn = True
    inputs = inputs_of("gpt2")
    with torch.no_grad():
        output = eager(model.half())(**inputs, output_attentions=True)
    mine = record(model, inputs=inputs).attention["decoder"]
    assert np.array_equal(mine, np.stack([w[0].float().numpy() for w in output.attentions]))
    other = record(plain.half(), inputs=inputs).attention["decoder"]
    assert not np.array_equal(mine, other)
