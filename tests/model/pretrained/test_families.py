"""Other people's models in our classes compute what transformers does with the same files."""

import json

import pytest
import torch
import transformers

from headlight.model.checkpoint import load
from headlight.model.decoding.search import steps_for
from headlight.model.masks import Masks
from headlight.model.pretrained.folder import contents_of
from headlight.model.pretrained.weights import CannotLoad
from tests.model.pretrained.folders import (
    KINDS,
    default_type,
    differences,
    in_float64,
    random_batch,
    say,
    theirs,
    write,
)


@pytest.fixture(scope="module", params=KINDS)
def pair(request, tmp_path_factory):
    """A folder and transformers' model of it."""
    folder = tmp_path_factory.mktemp(request.param)
    return folder, write(folder, request.param)


def test_float32(pair):
    logits, heads = differences(*pair)
    assert logits <= 1e-5 and heads <= 1e-5


def test_float64(pair):
    """To the last digits, and to float32's where transformers computes in float32."""
    folder, model = pair
    with default_type(torch.double):
        logits, heads = differences(folder, model.double())
        assert logits <= 5e-6 and heads <= 5e-6
        logits, heads = differences(folder, model, in_float64)
    assert logits <= 1e-10 and heads <= 1e-10


LEFT_OUT = {  # kind → field of our Config, and what a config calls it
    "bert": ("norm_eps", "layer_norm_eps"),
    "gpt2": ("norm_eps", "layer_norm_epsilon"),
    "llama": ("norm_eps", "rms_norm_eps"),
    "mistral": ("norm_eps", "rms_norm_eps"),
    "qwen2": ("norm_eps", "rms_norm_eps"),
    "qwen3": ("norm_eps", "rms_norm_eps"),
}


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_what_a_config_leaves_out_is_what_transformers_takes(kind, tmp_path):
    write(tmp_path, kind)
    ours, theirs = LEFT_OUT[kind]
    say(tmp_path / "config.json", **{theirs: ...})
    usual = getattr(transformers.AutoConfig.from_pretrained(tmp_path), theirs)
    assert getattr(load(tmp_path).model.config, ours) == usual
    say(tmp_path / "config.json", **{theirs: 2 * usual})
    assert getattr(load(tmp_path).model.config, ours) == 2 * usual


def window_of(model) -> int:
    """How many tokens transformers' model reads before its last row leaves out the first."""
    for length in range(2, 60):
        ids = torch.full((1, length), 5)
        weights = model(ids, output_attentions=True).attentions
        if any((layer[..., -1, 0] == 0).any() for layer in weights):
            return length - 1
    return 0


W = dict(sliding_window=8, use_sliding_window=True)
SLIDING = [  # kind, what its config says, how many of two layers have a window of 8
    ("mistral", dict(sliding_window=8), 2), ("mistral", dict(sliding_window=None), 0),
    *((kind, W | dict(max_window_layers=0, use_sliding_window=use), 2 * use)
      for kind in ("qwen2", "qwen3") for use in (True, False)),
    # A window that no layer uses limits nothing.
    ("qwen2", W | dict(max_window_layers=2), 0), ("qwen2", W | dict(max_window_layers=1), 1),
    ("qwen3", W, 0),
    *(("qwen3", W | dict(max_window_layers=3 * (not some),
                         layer_types=["full_attention", f"{kind}_attention"]), int(some))
      for kind, some in (("sliding", True), ("full", False))),
]  # fmt: skip


@pytest.mark.parametrize("kind, says, slides", SLIDING)
def test_a_sliding_window_is_transformers(kind, says, slides, tmp_path):
    """Of all layers; where only some have one, no text is longer than it."""
    model = write(tmp_path, kind, **says)
    say(tmp_path / "config.json", **says)  # transformers leaves out what is not used
    assert window_of(model) == (8 if slides else 0)
    ours = load(tmp_path).model
    assert ours.config.max_length == (8 if slides == 1 else 64)
    assert ours.window == (8 if slides == 2 else 0)
    if slides == 1:
        ids = random_batch(ours.config.vocab_size, ours.config.pad_id, (8, 8))
        with torch.no_grad():
            expected, _ = theirs(model, ids, pad_id=ours.config.pad_id)
            found = ours(ids, *Masks().build(ours, ids))
        assert (found - expected).abs().max() <= 1e-5 * expected.abs().max().clamp(min=1)
        return
    with default_type(torch.double):  # without padding: it may have nothing within its window
        logits, heads = differences(tmp_path, model.double(), in_float64, (20, 20))
    assert logits <= 1e-10 and heads <= 1e-10


def test_what_is_written_beyond_a_sliding_window_is_the_same_without_a_cache(tmp_path):
    write(tmp_path, "mistral", sliding_window=4)
    model = load(tmp_path).model
    prompt = random_batch(model.config.vocab_size, model.config.pad_id, (6,))
    cached, whole = (steps_for(model, prompt, Masks(), 12, 1, use) for use in (True, False))
    assert cached.cached
    text = prompt
    for _ in range(12):
        logits = cached(text)
        assert (logits - whole(text)).abs().max() <= 1e-5 * logits.abs().max().clamp(min=1)
        text = torch.cat([text, logits.argmax(dim=-1, keepdim=True)], dim=1)


@pytest.mark.parametrize("kind", ["mistral", "qwen2", "qwen3"])
def test_a_sliding_window_that_is_left_out_is_what_transformers_takes(kind, tmp_path):
    write(tmp_path, kind, max_position_embeddings=5000)
    say(tmp_path / "config.json", sliding_window=..., use_sliding_window=True)
    say(tmp_path / "config.json", layer_types=..., max_window_layers=0)
    usual = transformers.AutoConfig.from_pretrained(tmp_path).sliding_window
    assert load(tmp_path).model.window == usual < 5000


@pytest.mark.parametrize(
    "kinds",
    [3, ["full_attention"], ["full_attention", "linear_attention"], ["sliding_attention"] * 2],
    ids=str,
)
def test_kinds_of_layers_that_cannot_be_followed_are_refused(kinds, tmp_path):
    """Too few, unknown, or sliding without a window."""
    write(tmp_path, "qwen2")
    say(tmp_path / "config.json", layer_types=kinds)
    with pytest.raises(CannotLoad, match="for layer_types"):
        load(tmp_path)


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
