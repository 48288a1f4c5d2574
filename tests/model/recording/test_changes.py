"""Changes in other people's code."""

import copy

import numpy as np
import pytest
import torch

from headlight.model import record
from headlight.model.probing.changes import CannotChange
from tests.model.recording.models import (
    BY_OUTPUT,
    BY_TABLE,
    SHORT,
    SINKS,
    Own,
    inputs_of,
    model_of,
    named,
    state_of,
)

OUTPUTS = {  # how the projection behind an attention is called
    "bert": "attention.output.dense", "roberta": "attention.output.dense",
    "electra": "attention.output.dense", "gpt_neox": "dense", "opt": "out_proj",
    "llama": "o_proj", "qwen3": "o_proj", "mistral": "o_proj", "gemma2": "o_proj",
    "gpt_oss": "o_proj", "bart": "self_attn.out_proj", "m2m_100": "self_attn.out_proj",
}  # fmt: skip


@pytest.mark.parametrize("name", named(OUTPUTS, SHORT))
def test_a_head_off_is_its_columns_of_the_output_at_zero(name):
    model, inputs = model_of(name), inputs_of(name)
    kind = "encoder" if name in {"bert", "roberta", "electra", "bart", "m2m_100"} else "decoder"
    changed = record(model, inputs=inputs, changes=f"{kind}.1.2=off").attention
    other = copy.deepcopy(model)
    path = [n for n, m in other.named_modules() if n.endswith(OUTPUTS[name])]
    place = next(n for n in path if kind in n or name not in {"bart", "m2m_100"})
    weight = other.get_submodule(place).weight
    width = weight.shape[1] // 4
    with torch.no_grad():
        weight[:, width : 2 * width] = 0
    expected = record(other, inputs=inputs).attention
    plain = record(model, inputs=inputs).attention
    for k in plain:
        assert np.abs(changed[k] - expected[k]).max() <= 1e-5
    assert max(np.abs(changed[k] - plain[k]).max() for k in plain) > 1e-3


@pytest.mark.parametrize("name", named(BY_TABLE, SHORT))
def test_changes_are_where_they_are_asked_for(name):
    model, inputs = model_of(name), inputs_of(name)
    plain = record(model, inputs=inputs).attention
    for kind, weights in plain.items():
        last = len(weights)
        hidden = record(model, inputs=inputs, changes=f"{kind}.{last}.3=hide:2").attention[kind]
        assert (hidden[-1, 2, :, 1] == 0).all()
        others = [0, 1, 3]
        assert np.array_equal(hidden[-1, others], weights[-1, others])
        assert np.array_equal(hidden[:-1], weights[:-1])
        sums = hidden[-1, 2].sum(axis=-1)
        assert name in SINKS or ((np.abs(sums - 1) < 1e-5) | (sums == 0)).all()
        cold = record(model, inputs=inputs, changes=f"{kind}.{last}=temperature:0.5").attention[
            kind
        ]
        if name not in SINKS:
            squares = weights[-1].astype(float) ** 2
            expected = squares / squares.sum(axis=-1, keepdims=True)
            assert np.abs(cold[-1] - expected).max() <= 1e-5
            even = record(model, inputs=inputs, changes=f"{kind}.{last}=uniform").attention[kind]
            # of a weight that is allowed and too small for a float32 nothing is seen
            rows = even[-1].max(axis=-1, keepdims=True)
            assert ((even[-1] == 0) | (even[-1] == rows)).all()
            assert (even[-1][weights[-1] > 0] > 0).all()


@pytest.mark.parametrize("name", ["llama", "bart", "t5"])
def test_a_mask_that_is_taken_away_keeps_the_name_of_its_kind(name):
    model, inputs = model_of(name), inputs_of(name)
    weights = record(model, inputs=inputs, changes="decoder=mask:none").attention["decoder"]
    assert (np.triu(weights, 1) > 0).any()


@pytest.mark.parametrize("name", named(BY_OUTPUT, SHORT))
def test_what_can_only_be_read_says_so(name):
    with pytest.raises(ValueError, match="can only be read"):
        record(model_of(name), inputs=inputs_of(name), changes="all.1.1=off")


@pytest.mark.parametrize(
    "line",
    ["encoder=mean", "encoder=resample", "encoder=random", "encoder=patch",
     "encoder_feed_forward.1=skip", "text=positions:none",
     "encoder.9=off", "encoder.1.9=off"],
)  # fmt: skip
def test_what_cannot_be_changed_in_their_code_says_so(line):
    model = model_of("bert")
    before = state_of(model)
    with pytest.raises(ValueError, match=r"“.*”"):
        record(model, inputs=inputs_of("bert"), changes=line)
    assert state_of(model) == before


def texts_of_torch(batch_first=True):
    random = torch.Generator().manual_seed(0)
    texts = [torch.randn(1, length, 16, generator=random) for length in (5, 4)]
    return tuple(texts if batch_first else [text.transpose(0, 1) for text in texts])


@pytest.mark.parametrize("batch_first", [True, False])
def test_heads_off_and_masks_in_modules_of_torch(batch_first):
    model, inputs = Own(batch_first).eval(), texts_of_torch(batch_first)
    before, plain = state_of(model), record(model, inputs=inputs).attention
    shapes = {kind: w.shape for kind, w in plain.items()}
    assert shapes == {"encoder": (2, 4, 5, 5), "decoder": (2, 4, 4, 4), "cross": (2, 4, 4, 5)}
    with torch.no_grad():
        first, source = model.transformer.encoder.layers[0].self_attn, [inputs[0]] * 3
        _, expected = first(*source, need_weights=True, average_attn_weights=False)
    assert np.abs(plain["encoder"][0] - expected[0].numpy()).max() < 1e-6
    for kind, weights in plain.items():
        hidden = record(model, inputs=inputs, changes=f"{kind}.2.3=hide:2").attention[kind]
        assert (hidden[1, 2, :, 1] == 0).all() and np.array_equal(hidden[0], weights[0])
        rest = weights[1, 2].copy()
        rest[:, 1] = 0
        sums = rest.sum(axis=-1, keepdims=True)
        rows = sums[:, 0] > 0  # of a causal mask the second row keeps its first column
        assert np.abs(hidden[1, 2] - rest / np.where(sums, sums, 1))[rows].max() < 1e-6
        assert np.array_equal(hidden[1, [0, 1, 3]], weights[1, [0, 1, 3]])
    ahead = record(model, inputs=inputs, changes="decoder=mask:none").attention["decoder"]
    with torch.no_grad():
        first = model.transformer.decoder.layers[0].self_attn
        target = [inputs[1]] * 3
        _, expected = first(*target, need_weights=True, average_attn_weights=False)
    assert np.abs(ahead[0] - expected[0].numpy()).max() < 1e-6
    assert state_of(model) == before


def test_a_head_of_torch_off_is_its_columns_of_the_output_at_zero():
    model, inputs = Own().eval(), texts_of_torch()
    before = state_of(model)
    changed = record(model, inputs=inputs, changes="encoder.1.2=off; cross.1.4=off").attention
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.transformer.encoder.layers[0].self_attn.out_proj.weight[:, 4:8] = 0
        other.transformer.decoder.layers[0].multihead_attn.out_proj.weight[:, 12:] = 0
    for kind, weights in record(other, inputs=inputs).attention.items():
        assert np.abs(changed[kind] - weights).max() < 1e-6
    assert (
        np.abs(changed["decoder"] - record(model, inputs=inputs).attention["decoder"]).max() > 1e-4
    )
    assert state_of(model) == before


@pytest.mark.parametrize("line", ["encoder=temperature:2", "encoder=uniform", "encoder=mean"])
def test_what_torch_keeps_to_itself_says_so(line):
    with pytest.raises(CannotChange, match=r"“encoder=.*module of torch"):
        record(Own(), inputs=texts_of_torch(), changes=line)
