"""The picture of the whole model is the model: every parameter once, every shape as it comes."""

import pytest

from model.analysis.architecture import blocks
from model.card import parameter_count
from model.presets import PRESETS, build
from tests.model.common import (
    CHECKPOINTS,
    SIZES,
    depths,
    load,
    random_model,
    traced,
)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_parameter_counts_once(preset):
    wanted = dict(n_encoder_layers=2, n_decoder_layers=5)
    has = depths(preset)
    model = build(preset, **SIZES | {name: wanted[name] for name in has})
    found = blocks(model, {"src": 7, "tgt": 6})
    assert sum(block.parameters for block in found) == parameter_count(model)
    layers = {(b.stack, b.layer) for b in found if b.layer is not None}
    assert layers == {
        (stack, i)
        for stack in ("encoder", "decoder")
        if f"n_{stack}_layers" in has
        for i in range(wanted[f"n_{stack}_layers"])
    }
    assert sum(b.kind == "cross" for b in found) == (5 if len(has) == 2 else 0)


def test_what_is_shared_says_with_whom():
    found = {(b.stack, b.part): b for b in blocks(random_model("paper"), {"src": 7, "tgt": 6})}
    for block in (found["decoder", "embedding"], found["output", "generator"]):
        assert block.shares == "encoder embedding" and block.parameters == 0
    assert not found["encoder", "embedding"].shares


@pytest.mark.parametrize("folder", CHECKPOINTS, ids=lambda folder: folder.name)
def test_shapes_are_those_of_a_pass(folder):
    own = load(folder)
    whole = own.trace("a b c")
    for block in blocks(own.model, {name: len(text.ids) for name, text in whole.texts.items()}):
        if block.kind:
            assert whole.attention[block.kind][block.layer].shape == block.weights
        if block.layer is not None:
            side = next(side for side in whole.sides.values() if side.stack == block.stack)
            outputs = whole.output if block.kind else whole.feed_forward
            assert outputs[block.kind or side.name][block.layer].shape == block.shape
        if block.part == "generator":
            assert whole.logits.shape == block.shape
        if block.part == "embedding":
            side = "src" if block.stack == "encoder" else "tgt"
            assert whole.embedded[side].shape == block.shape


def test_every_attention_of_the_capture_has_a_block(tokenizer):
    model = random_model("pre_norm", vocab_size=len(tokenizer))
    whole = traced(model, tokenizer.encode("The dog"), tokenizer.encode("Ein Hund"))
    found = {(b.kind, b.layer) for b in blocks(model, {"src": 5, "tgt": 5}) if b.kind}
    assert found == {(kind, i) for kind, of in whole.attention.items() for i in range(len(of))}
