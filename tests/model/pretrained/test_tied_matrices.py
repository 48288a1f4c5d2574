"""Embeddings and output may be one matrix, as a config says, and each may be stored or not, the
same or another. A folder is read as transformers reads it, or refused by name."""

import json
import re
import shutil

import pytest
import torch
import transformers
from allpairspy import AllPairs
from safetensors.torch import load_file, save_file

from headlight.model.checkpoint import load
from headlight.model.pretrained.weights import CannotLoad
from tests.model.common import in_short
from tests.model.pretrained.folders import KINDS, differences, write

OUTPUT = "model.embed_tokens.weight", "lm_head.weight"
SIDES = "model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight"
PLACES = {  # kind → the weights that one tensor may stand for
    "bert": ("bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"),
    "bert-biases": ("cls.predictions.bias", "cls.predictions.decoder.bias"),
    "gpt2": ("transformer.wte.weight", "lm_head.weight"),
    "llama": OUTPUT,
    "mistral": OUTPUT,
    "qwen2": OUTPUT,
    "qwen3": OUTPUT,
    "marian": ("model.shared.weight", "lm_head.weight", *SIDES),
    "marian-apart": (*SIDES, "lm_head.weight"),
}
ONE_LAYER = {  # all else is built for every combination
    "gpt2": dict(n_layer=1),
    "marian": dict(encoder_layers=1, decoder_layers=1),
    "marian-apart": dict(encoder_layers=1, decoder_layers=1),
}
READ_AS_LLAMA = ("mistral", "qwen2", "qwen3")  # by the same lines of ours
UNUSED = {"model.shared.weight", "cls.predictions.bias"}  # where nothing is tied
STORED = ("no", "shared", "its own")
SAID = {"tied": True, "untied": False, "not said": None}  # in a config


@pytest.fixture(
    scope="module", params=in_short(PLACES, "bert", "bert-biases", "gpt2", "llama", "marian")
)
def untied(request, tmp_path_factory):
    """A folder in which every matrix is stored and another; the names of these."""
    folder = tmp_path_factory.mktemp(request.param)
    kind = request.param.removesuffix("-biases")
    layers = ONE_LAYER.get(kind, dict(num_hidden_layers=1))
    write(folder, kind, tie_word_embeddings=False, **layers)
    return folder, kind, PLACES[request.param]


def combinations(kind, places):
    """What a config says of ties, and what is stored at the places: any two of these in every way,
    whatever the others are; one place alone, which those tied to it take; and each its own. Where
    they are tied any two again, but for kinds that are read as another is."""
    rows = [*AllPairs([[*SAID], *[STORED] * len(places)])]
    rows += [[said, "its own", *["no"] * (len(places) - 1)] for said in SAID]
    rows += [[said, *["its own"] * len(places)] for said in SAID]
    if kind not in READ_AS_LLAMA:
        rows += [["tied", *stored] for stored in AllPairs([STORED] * len(places))]
    for said, *stored in dict.fromkeys(map(tuple, rows)):
        yield said, dict(zip(places, stored, strict=True))


def variants(folder, kind, places, into):
    """The folder with each combination of what is said and stored."""
    config = json.loads((folder / "config.json").read_text())
    tensors = load_file(folder / "model.safetensors")
    chance = torch.Generator().manual_seed(0)
    own = {name: torch.randn(tensors[places[-1]].shape, generator=chance) / 5 for name in places}
    shared = torch.randn(tensors[places[-1]].shape, generator=chance) / 5
    shutil.copytree(folder, into)
    for said, stored in combinations(kind, places):
        values = config | {"tie_word_embeddings": SAID[said]}
        values = {name: value for name, value in values.items() if value is not None}
        (into / "config.json").write_text(json.dumps(values))
        changed = {name: tensor for name, tensor in tensors.items() if name not in places}
        for name, how in stored.items():
            if how != "no":
                changed[name] = shared.clone() if how == "shared" else own[name]
        save_file(changed, into / "model.safetensors", {"format": "pt"})
        yield said, stored


def test_as_transformers(untied, tmp_path):
    folder, kind, places = untied
    loaded = set()
    for said, stored in variants(folder, kind, places, tmp_path / "model"):
        model, told = getattr(transformers, KINDS[kind][1]).from_pretrained(
            tmp_path / "model", attn_implementation="eager", output_loading_info=True
        )
        missing = set(told["missing_keys"])
        if needed := missing - UNUSED:
            with pytest.raises(CannotLoad, match="lacks the weight") as error:
                load(tmp_path / "model")
            (name,) = re.findall(r"lacks the weight (\S+)\.$", str(error.value))
            assert any(weight.endswith(name) for weight in needed), (said, stored, name)
        else:
            logits, heads = differences(tmp_path / "model", model.eval())
            assert logits <= 1e-5 and heads <= 1e-5, (said, stored, logits, heads)
            loaded.add(said)
    assert loaded == set(SAID)
