"""The picture of the whole model is the model: every parameter once, every shape as it comes."""

import pytest

from model import load
from model.blocks import blocks
from model.card import parameter_count
from model.presets import PRESETS, build
from model.trace import KINDS, trace
from tests.model.common import CHECKPOINTS, SIZES, random_model, tiny_tokenizer


@pytest.mark.parametrize("preset", PRESETS)
def test_every_parameter_counts_once(preset):
    depths = dict(n_encoder_layers=2)
    if preset != "bloem":
        depths["n_decoder_layers"] = 5
    model = build(preset, **SIZES | depths)
    found = blocks(model, 7, 6)
    assert sum(block.parameters for block in found) == parameter_count(model)
    layers = {(b.stack, b.layer) for b in found if b.layer is not None}
    decoder = 0 if preset == "bloem" else 5
    assert layers == {("encoder", i) for i in range(2)} | {("decoder", i) for i in range(decoder)}
    assert sum(b.kind == "cross" for b in found) == decoder


def test_what_is_shared_says_with_whom():
    found = {(b.stack, b.part): b for b in blocks(random_model("paper"), 7, 6)}
    for block in (found["decoder", "embedding"], found["output", "generator"]):
        assert block.shares == "encoder embedding" and block.parameters == 0
    assert not found["encoder", "embedding"].shares


@pytest.mark.parametrize("folder", CHECKPOINTS, ids=lambda folder: folder.name)
def test_shapes_are_those_of_a_pass(folder):
    own = load(folder)
    whole = own.trace("a b c")
    for block in blocks(own.model, len(whole.src.ids), len(whole.tgt.ids)):
        if block.kind:
            assert whole.attention[block.kind][block.layer].shape == block.weights
        if block.layer is not None:
            name = f"{block.stack}.layers.{block.layer}.{block.part}"
            assert whole.sublayers[name].shape == block.shape
        if block.part == "generator":
            assert whole.logits.shape == block.shape
        if block.part == "embedding":
            side = "src" if block.stack == "encoder" else "tgt"
            assert whole.embedded[side].shape == block.shape


def test_every_attention_of_the_capture_has_a_block():
    tokenizer = tiny_tokenizer()
    model = random_model("pre_norm", vocab_size=len(tokenizer))
    whole = trace(model, tokenizer.encode("The dog"), tokenizer.encode("Ein Hund"))
    found = {(b.kind, b.layer) for b in blocks(model, 5, 5) if b.kind}
    assert found == {(kind, i) for kind in KINDS for i in range(len(whole.attention[kind]))}
