"""Weights in all forms in which people have them."""

import numpy as np
import pytest
import torch
import transformers as tf

from headlight.model import record
from tests.model.recording.models import TOKENS, some


def forms(weights):
    tensor = torch.from_numpy(weights)
    layers = tuple(layer[None] for layer in tensor)  # with a batch
    names = "blocks.{}.attn.hook_pattern", "encoder.layer.{}.attention.self"
    yield weights
    yield tensor
    yield tensor[:, None]
    yield layers
    yield [layer[0] for layer in layers]
    yield [layer.numpy() for layer in layers]
    yield {"attentions": layers}
    yield tf.modeling_outputs.BaseModelOutput(attentions=layers)
    yield {"encoder": weights}
    yield tensor.double().requires_grad_()
    yield from (tensor.to(dtype) for dtype in (torch.float16, torch.bfloat16))
    for name in names:  # in another order
        yield {name.format(i): layers[i] for i in reversed(range(len(layers)))}


def test_all_forms_are_one():
    weights = some()
    for form in forms(weights):
        recorded = record(form, TOKENS)
        (kind,) = recorded.attention
        half = getattr(form, "dtype", None) in (torch.float16, torch.bfloat16)
        assert np.abs(recorded.attention[kind] - weights).max() < (1e-2 if half else 1e-6)
        assert recorded.texts_of(kind)[0].tokens == ("[CLS]", "un", "·believ", "·able", "[SEP]")
    assert [*record(some(causal=True)).attention] == ["decoder"]
    assert [*record(some()).attention] == ["encoder"]


@pytest.mark.parametrize("tokens", [["a"], ["a"] * 6, "abcde", [1.5] * 5, [None] * 5, 7])
def test_tokens_that_do_not_fit_get_a_sentence(tokens):
    with pytest.raises(ValueError, match=r"token|text"):
        record(some(), tokens)


def test_the_table_of_a_recording():
    table = record(some(), TOKENS).to_dataframe()
    assert len(table) == 2 * 4 * 5 * 5 and abs(table.weight.sum() - 2 * 4 * 5) < 1e-3
