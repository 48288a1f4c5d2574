"""Every value of a config.json, set to another: the model computes what transformers does with the
same file, or is refused in a sentence."""

import json
import shutil

import pytest
import torch
import transformers

from headlight.model.checkpoint import load
from headlight.model.masks import Masks
from headlight.model.pretrained.weights import CannotLoad
from tests.model.common import in_short
from tests.model.pretrained.folders import KINDS, random_batch, say, theirs, write

ALIKE = ("bert", "gpt2", "llama", "mistral", "qwen2", "qwen3", "marian")
OTHER = {  # what is neither one more, nor the opposite
    "rope_scaling": {"rope_type": "linear", "factor": 2.0, "rope_theta": 100.0},
    "rope_parameters": {"rope_type": "linear", "factor": 3.0, "rope_theta": 50.0},
    "rope_theta": 33.0,
    "sliding_window": 5,
    "partial_rotary_factor": 0.5,
    "head_dim": 8,
    "layer_types": ["sliding_attention"] * 2,
    "num_hidden_layers": 1,
    "hidden_size": 48,
    "num_attention_heads": 2,
    "hidden_act": "relu",
    "activation_function": "relu",
    "tie_word_embeddings": True,
    "original_max_position_embeddings": 7,
}
LENGTH = 12


def another(value):
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
    return 3


@torch.no_grad()
def of_theirs(folder, kind, ids):
    model = getattr(transformers, KINDS[kind][1]).from_pretrained(
        folder, attn_implementation="eager"
    )
    return theirs(model.eval(), *ids, pad_id=-1)[0], model.config


@pytest.mark.parametrize("share", in_short([1, 5], 5))
@pytest.mark.parametrize("kind", in_short(ALIKE, "gpt2", "mistral", "marian"))
def test_it_is_followed_or_refused(kind, share, tmp_path):
    write(tmp_path / "good", kind)
    said = json.loads((tmp_path / "good" / "config.json").read_text())
    model = load(tmp_path / "good").model
    ids = [random_batch(model.config.vocab_size, -1, (LENGTH, LENGTH))]
    if len(model.sides()) > 1:
        ids.append(random_batch(model.config.vocab_size, -1, (8, 8), seed=1))
        ids[1][:, 0] = model.config.bos_id
    usual, config = of_theirs(tmp_path / "good", kind, ids)
    names = config.to_dict() | dict.fromkeys((*config.attribute_map, *OTHER))
    counts, wrong = dict.fromkeys(["same", "changed", "refused", "theirs fails"], 0), []
    for name in sorted(names.keys() - {"dtype", "return_dict"})[::share]:
        value = OTHER.get(name, another(names[name]))
        if value == said.get(name):
            value = another(value)
        shutil.rmtree(tmp_path / "one", ignore_errors=True)
        shutil.copytree(tmp_path / "good", tmp_path / "one")
        (tmp_path / "one" / "config.json").write_text(json.dumps(said | {name: value}))
        try:
            expected, _ = of_theirs(tmp_path / "one", kind, ids)
        except Exception:  # of many kinds
            counts["theirs fails"] += 1
            continue
        try:
            model = load(tmp_path / "one").model
        except CannotLoad as error:
            counts["refused"] += 1
            assert str(error).endswith(".") and "\n" not in str(error)
            continue
        if model.config.max_length < LENGTH:
            counts["refused"] += 1  # with both numbers, where a text is longer
            continue
        with torch.no_grad():
            found = model(*ids, *Masks().build(model, *ids))
        off = (found - expected).abs().max() / expected.abs().max().clamp(min=1)
        counts["same" if torch.allclose(usual, expected, atol=1e-4) else "changed"] += 1
        wrong += [] if off <= 1e-5 else [(name, value, off.item())]
    print(kind, counts)
    assert not wrong and counts["same"]


@pytest.mark.parametrize("outside", [{}, dict(original_max_position_embeddings=7)], ids=str)
@pytest.mark.parametrize(
    "older", [{}, dict(type="yarn", factor=3.0, original_max_position_embeddings=9)], ids=str
)
def test_of_two_places_for_rotation_the_older_counts(older, outside, tmp_path):
    """And of two for the length that a model was trained on, the one outside."""
    write(tmp_path, "llama-yarn")
    say(tmp_path / "config.json", **outside, rope_scaling=older)
    ids = [random_batch(300, -1, (40,))]
    expected, _ = of_theirs(tmp_path, "llama-yarn", ids)
    model = load(tmp_path).model
    with torch.no_grad():
        found = model(*ids, *Masks().build(model, *ids))
    assert (found - expected).abs().max() <= 1e-5 * expected.abs().max().clamp(min=1)
