"""Other people's models in our classes compute what transformers does with the same files."""

import json
from contextlib import nullcontext

import pytest
import torch

from model.checkpoint import load
from model.masks import Masks
from model.pretrained.folder import contents_of
from model.probing.capture import capture, view
from model.probing.sites import attention_at
from tests.model.pretrained.folders import (
    KINDS,
    default_type,
    in_float64,
    random_batch,
    theirs,
    write,
)


@pytest.fixture(scope="module", params=KINDS)
def pair(request, tmp_path_factory):
    """A folder and transformers' model of it."""
    folder = tmp_path_factory.mktemp(request.param)
    return folder, write(folder, request.param)


@torch.no_grad()
def differences(folder, model, exact=nullcontext):
    """Largest difference of the logits, as a share of the largest, and of all weights."""
    ours = load(folder)
    config = ours.model.config
    ids = [random_batch(config.vocab_size, config.pad_id)]
    if len(ours.model.sides()) > 1:
        targets = random_batch(config.vocab_size, config.pad_id, (8, 12, 5), seed=1)
        targets[:, 0] = config.bos_id
        ids.append(targets)
    with exact(model):
        expected, weights = theirs(model, *ids, pad_id=config.pad_id)
    with capture(one := view(ours.model)) as outputs:
        found = one.hidden(*ids, *Masks().build(one, *ids))
        if expected.shape[-1] != config.d_model:
            found = one.logits(found, ids[-1])
    assert len(outputs) == len(weights) == len(one.sites())
    assert found.dtype == expected.dtype
    off = (found - expected).abs().max() / expected.abs().max().clamp(min=1)
    sites = [outputs[f"{site.name}.softmax"] for site in one.sites()]
    heads = [(a - b).abs().max() for a, b in zip(sites, weights, strict=True)]
    return off.item(), max(heads).item()


def test_float32(pair):
    logits, heads = differences(*pair)
    assert logits <= 1e-5 and heads <= 1e-5


def test_float64(pair):
    """To the last digits, and to float32's where transformers computes in float32."""
    folder, model = pair
    with default_type(torch.double):
        logits, heads = differences(folder, model.double())
        assert logits <= 1e-6 and heads <= 1e-6
        logits, heads = differences(folder, model, in_float64)
    assert logits <= 1e-10 and heads <= 1e-10


def test_groups_and_wide_heads_are_told(tmp_path):
    write(tmp_path, "qwen3")
    model = load(tmp_path).model
    for site in model.sites():
        assert (site.n_heads, site.n_key_heads) == (4, 2)
        attention = attention_at(model, site)
        assert attention.query.linear.weight.shape == (4 * 16, 24)
        assert attention.key.linear.weight.shape == (2 * 16, 24)


@pytest.mark.parametrize(
    "says, direction",
    [
        ({"source_lang": "en", "target_lang": "fi"}, ["en", "fi"]),
        ({"source_lang": "<b>", "target_lang": "fi"}, None),
        ({"source_lang": 3, "target_lang": None}, None),
        ([], None),
        ({}, None),
    ],
)
def test_a_tokenizer_says_between_which_languages(says, direction, tmp_path):
    write(tmp_path, "marian")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(says), encoding="utf-8")
    assert contents_of(tmp_path).card.get("direction") == direction
