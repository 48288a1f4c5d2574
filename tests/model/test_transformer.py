import math

import pytest
import torch
from torch import nn

from headlight.model.masks import Masks
from headlight.model.presets import build
from headlight.model.transformer import (
    Config,
    Embedding,
    MaskedSoftmax,
    PositionalEncoding,
    Transformer,
)
from tests.devices import here, within
from tests.model.common import (
    PRESETS,
    assert_close,
    random_ids,
    random_model,
)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


def random_mask(*shape):
    """A mask that leaves every row something."""
    mask = here(torch.rand(*shape)) < 0.5
    mask[..., 0] |= ~mask.any(dim=-1)
    return mask


def test_a_row_with_nothing_to_attend_to_is_zero_and_so_is_its_gradient():
    scores, mask = here(torch.randn(2, 3, 5, 7)).requires_grad_(), random_mask(2, 1, 5, 7)
    mask[0, :, 3] = False
    weights = MaskedSoftmax()(scores, mask)
    assert not weights[0, :, 3].any()
    others = here(torch.ones(2, 5, dtype=torch.bool))
    others[0, 3] = False
    assert_close(weights.sum(dim=-1).transpose(1, 2)[others], here(torch.ones(9, 3)))
    (weights * torch.randn_like(weights)).sum().backward()
    assert scores.grad.isfinite().all()
    assert not scores.grad[0, :, 3].any()
    assert scores.grad[0, :, 2].any()


@pytest.mark.parametrize("d_model", [16, 7])
def test_positional_encoding_is_the_paper_s_formula(d_model):
    table = PositionalEncoding(50, d_model)(50)
    for position in range(50):
        for i in range(d_model):
            angle = position / 10000 ** ((i - i % 2) / d_model)
            expected = math.cos(angle) if i % 2 else math.sin(angle)
            assert table[position, i].item() == pytest.approx(expected, abs=within(1e-6))


def test_an_embedding_is_the_scaled_token_plus_its_position():
    embedding = here(Embedding(Config(vocab_size=53, d_model=24)).eval())
    ids = random_ids(5, 7)
    expected = embedding.token.weight[ids] * math.sqrt(24) + embedding.position.table[:7]
    assert_close(embedding(ids), expected)


@pytest.mark.parametrize("name", ["vocab_size", "d_model", "n_heads", "d_ff", "max_length"])
def test_config_refuses_nothing(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, not 0"):
        Config(**{"vocab_size": 10} | {name: 0})
    with pytest.raises(ValueError, match=r"d_model \(10\) must be a multiple of n_heads \(4\)"):
        Config(vocab_size=10, d_model=10, n_heads=4)


@pytest.mark.parametrize("preset", PRESETS)
def test_initial_weights(preset):
    config = dict(vocab_size=500, d_model=64, n_heads=4, d_ff=96)
    model = here(build(preset, **config, n_encoder_layers=1, n_decoder_layers=1))
    weight = model.generator.weight
    assert model.src_embedding.token.weight is model.tgt_embedding.token.weight is weight
    assert model.generator.bias is None
    for module in (m for m in model.modules() if isinstance(m, nn.Linear)):
        if module is model.generator:
            continue
        bound = math.sqrt(6 / sum(module.weight.shape))
        assert 0.98 * bound < module.weight.abs().max() <= bound
        assert abs(module.weight.mean()) < 0.05 * bound
        assert not module.bias.any()
    assert model.src_embedding.token(here(torch.arange(500))).var().item() == pytest.approx(
        1, abs=0.05
    )


def test_the_paper_s_base_model_has_the_paper_s_size():
    """65 million with 37,000 shared tokens (table 3), counted here part by part."""
    d, ff, vocab = 512, 2048, 37000
    attention, norm = 4 * (d * d + d), 2 * d
    feed_forward = d * ff + ff + ff * d + d
    encoder, decoder = attention + feed_forward + 2 * norm, 2 * attention + feed_forward + 3 * norm
    with torch.device("meta"):
        model = Transformer(Config(vocab_size=vocab))
    count = sum(p.numel() for p in model.parameters())
    assert count == vocab * d + 6 * (encoder + decoder)
    assert 60e6 < count < 66e6


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("causal", [True, False])
def test_a_later_target_token_changes_earlier_logits_only_without_the_causal_mask(preset, causal):
    model, src, tgt = random_model(preset), random_ids(6, 9), random_ids(8, 8)
    masks = Masks(causal=causal).build(model, src, tgt)
    before = model(src, tgt, *masks)
    for position in range(1, 8):
        changed = tgt.clone()
        changed[:, position] = (tgt[:, position] - 3 + 7) % 50 + 3
        change = (model(src, changed, *masks) - before).abs().amax(dim=(0, 2))
        assert change[position:].min() > 1e-4 if causal else change.min() > 1e-4
        assert change[:position].max() <= within(1e-6) or not causal
