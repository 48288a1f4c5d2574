"""Swapped parts do what the systems they come from do."""

import pytest
import torch
from torch import nn

from headlight.model import presets
from headlight.model.masks import padding_mask
from headlight.model.probing.capture import capture
from tests.devices import here, within

SIZES = dict(vocab_size=50, d_model=16, n_heads=4, d_ff=64, n_encoder_layers=2, max_length=32)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return here(presets.build("bloem", **SIZES, n_classes=3).eval())


@torch.no_grad()
def notebook(model, ids):
    """Peter Bloem's classification transformer, written out: log-probabilities, and the weights
    of every layer's heads."""
    seen = []
    x = model.src_embedding.token.weight[ids] + model.src_embedding.position.weight[: ids.shape[1]]
    b, t, k = x.shape
    for layer in model.encoder.layers:
        attention = layer.self_attn
        h = attention.n_heads
        parts = [
            (x @ part.weight.T).view(b, t, h, k).transpose(1, 2).reshape(b * h, t, k)
            for part in (attention.query, attention.key, attention.value)
        ]
        queries, keys, values = parts[0] / k**0.25, parts[1] / k**0.25, parts[2]
        weights = torch.bmm(queries, keys.transpose(1, 2)).softmax(dim=2)
        out = torch.bmm(weights, values).view(b, h, t, k).transpose(1, 2).reshape(b, t, h * k)
        x = layer.norm1(attention.output(out) + x)
        forward = nn.Sequential(layer.feed_forward.linear1, nn.ReLU(), layer.feed_forward.linear2)
        x = layer.norm2(forward(x) + x)
        seen.append(weights.view(b, h, t, t))
    scores = x.mean(dim=1) @ model.generator.weight.T + model.generator.bias
    return scores.log_softmax(dim=1), seen


def test_bloem_is_the_notebooks(model):
    ids = here(torch.randint(1, 50, (5, 11)))
    with capture(model) as seen:
        ours = model(ids)[:, 0]
    theirs, weights = notebook(model, ids)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=within(1e-5))
    for found, expected in zip(seen.values(), weights, strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=within(1e-5))
    for layer in model.encoder.layers:
        assert layer.self_attn.query.weight.shape == (4 * 16, 16)
        assert layer.self_attn.query.bias is None


def test_padding_changes_no_class(model):
    """Attention and mean leave padding out, which the notebook does not."""
    ids = here(torch.randint(1, 50, (3, 7)))
    padded = nn.functional.pad(ids, (0, 6), value=0)
    found = model(padded, padding_mask(padded, 0))
    torch.testing.assert_close(found, model(ids), rtol=0, atol=within(1e-5))


def test_a_classifier_has_no_decoder():
    with pytest.raises(ValueError, match="no decoder layers"):
        presets.build("bloem", **SIZES, n_decoder_layers=1)
