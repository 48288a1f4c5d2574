"""The figure of the model is the model: every parameter once, every shape as it comes, and blocks
in the order in which they run."""

import pytest
import torch

from headlight.model.analysis.architecture import EMBEDDINGS, LAYER_OUTPUTS, OUTPUT, alike, blocks
from headlight.model.card import parameter_count
from headlight.model.masks import Masks
from headlight.model.presets import PRESETS, build
from headlight.model.probing.capture import inputs_of, outputs_of
from headlight.model.probing.sites import attention_at, embedding_of, final_norm_of, sides_of
from tests import odd
from tests.model.common import (
    CHECKPOINTS,
    SIZES,
    depths,
    load,
    random_ids,
    random_model,
)

LENGTHS = {"src": 7, "tgt": 6}
SYSTEMS = [*PRESETS, odd.NAME]


@pytest.fixture(autouse=True)
def odd_preset(monkeypatch):
    monkeypatch.setitem(PRESETS, odd.NAME, odd.ODD)


def collapsed(found):
    """How many parameters the figure shows with alike layers drawn once."""
    total = sum(block.parameters for block in found if block.layer is None)
    for stack in {block.stack for block in found}:
        for run in alike(found, stack):
            layer = [block for block in found if (block.stack, block.layer) == (stack, run[0])]
            total += len(run) * sum(block.parameters for block in layer)
    return total


@pytest.mark.parametrize("preset", SYSTEMS)
def test_every_parameter_counts_once(preset):
    wanted = dict(n_encoder_layers=2, n_decoder_layers=5)
    has = depths(preset)
    model = build(preset, **SIZES | {name: wanted[name] for name in has})
    found = blocks(model, LENGTHS)
    assert sum(block.parameters for block in found) == parameter_count(model) == collapsed(found)
    layers = {(b.stack, b.layer) for b in found if b.layer is not None}
    assert layers == {
        (stack, i)
        for stack in ("encoder", "decoder")
        if f"n_{stack}_layers" in has
        for i in range(wanted[f"n_{stack}_layers"])
    }
    assert sum(b.kind == "cross" for b in found) == (5 if len(has) == 2 else 0)


def test_what_is_shared_says_with_whom():
    found = {(b.stack, b.part): b for b in blocks(random_model("paper"), LENGTHS)}
    for block in (found["decoder", "embedding"], found[OUTPUT, "generator"]):
        assert block.shares == "encoder embedding" and block.parameters == 0
    assert not found["encoder", "embedding"].shares


def test_layers_that_share_their_weights_are_not_alike():
    """The first one has the parameters."""
    model = random_model("paper")
    model.decoder.layers[2] = model.decoder.layers[1] = model.decoder.layers[0]
    found = blocks(model, LENGTHS)
    assert alike(found, "decoder") == [[0], [1, 2]]
    assert sum(block.parameters for block in found) == parameter_count(model) == collapsed(found)


def test_runs_of_layers_that_are_alike():
    found = blocks(random_model(odd.NAME, n_encoder_layers=4), LENGTHS)
    assert alike(found, "encoder") == [[0], [1], [2, 3]]
    assert alike(found, "decoder") == [[0, 1, 2]]
    assert alike(found, OUTPUT) == []


def module_of(model, block):
    """What computes a block; None for what no module does."""
    if block.stack == OUTPUT:
        return model.generator if block.part == "generator" else None
    side = next(side for side in model.sides() if side.stack == block.stack)
    if block.layer is None:
        embedding = embedding_of(model, side)
        parts = {"embedding": embedding.token, "position": embedding.position}
        return parts.get(block.part) or final_norm_of(model, side)
    layer = model.get_submodule(side.layers[block.layer])
    name = block.sublayer if block.part == block.sublayer else layer.sublayers[block.sublayer]
    return layer.get_submodule(name)


def one_pass(model):
    ids = [random_ids(LENGTHS[side]) for side in sides_of(model)]
    return lambda: model(*ids, *Masks().build(model, *ids))


@pytest.mark.parametrize("preset", SYSTEMS)
def test_blocks_stand_in_the_order_in_which_they_run(preset):
    model = random_model(preset)
    found = blocks(model, LENGTHS)
    modules = {block: module for block in found if (module := module_of(model, block))}
    with inputs_of(modules) as ran:  # in the order of first calls
        one_pass(model)()
    # A decoder's embedding may run before the encoder's layers, and token and position of one
    # embedding in either order.
    for stack in {block.stack for block in found}:
        order = [b for b in ran if b.stack == stack and b.part not in ("embedding", "position")]
        drawn = [b for b in modules if b in order]
        assert order == drawn


@pytest.mark.parametrize("preset", SYSTEMS)
@torch.no_grad()
def test_add_and_norm_are_where_the_model_has_them(preset):
    """Norm after the sum: it reads what entered the sublayer plus what left it. Norm before: the
    sublayer reads what left the norm, and the next one the sum of what entered the norm and what
    left the sublayer."""
    model = random_model(preset)
    found = [block for block in blocks(model, LENGTHS) if block.layer is not None]
    modules = {block: module_of(model, block) for block in found}
    with inputs_of(modules) as inputs, outputs_of(modules) as outputs:
        one_pass(model)()
    pairs = list(zip(found[::2], found[1::2], strict=True))
    assert all(first.sublayer == second.sublayer for first, second in pairs)
    for i, (first, second) in enumerate(pairs):
        if second.part == "add_norm":
            torch.testing.assert_close(inputs[second][0], inputs[first][0] + outputs[first])
            continue
        assert first.part == "norm"
        assert inputs[second][0] is outputs[first]
        if i + 1 < len(pairs) and pairs[i + 1][0].stack == first.stack:
            after = inputs[pairs[i + 1][0]][0]
            torch.testing.assert_close(after, inputs[first][0] + outputs[second])


@pytest.mark.parametrize("preset", SYSTEMS)
@torch.no_grad()
def test_arrows_between_stacks_come_from_what_is_attended_to(preset):
    model = random_model(preset)
    found = [block for block in blocks(model, LENGTHS) if block.kind]
    assert {b.kind for b in found if b.keys} <= {"cross", odd.KIND}
    sides = sides_of(model)
    modules = {block: attention_at(model, block.site).key for block in found}
    given = {(name, EMBEDDINGS): embedding_of(model, side) for name, side in sides.items()}
    given |= {(name, LAYER_OUTPUTS): final_norm_of(model, side) for name, side in sides.items()}
    with inputs_of(modules) as inputs, outputs_of(given) as outputs:
        one_pass(model)()
    for block in found:
        if block.keys:
            source = outputs[block.site.key_side, block.keys]
            torch.testing.assert_close(inputs[block][0], source, rtol=0, atol=0)
        else:
            assert block.site.query_side == block.site.key_side


@pytest.mark.parametrize("folder", CHECKPOINTS, ids=lambda folder: folder.name)
def test_shapes_are_those_of_a_pass(folder):
    own = load(folder)
    whole = own.trace("a b c")
    for block in blocks(own.model, {name: len(text.ids) for name, text in whole.texts.items()}):
        side = next((side for side in whole.sides.values() if side.stack == block.stack), None)
        if block.kind:
            assert whole.attention[block.kind][block.layer].shape == block.weights
        if block.layer is not None and block.part == block.sublayer:
            outputs = whole.output if block.kind else whole.feed_forward
            assert outputs[block.kind or side.name][block.layer].shape == block.shape
        if block.part in ("generator", "softmax", "log_softmax"):
            assert whole.logits.shape == block.shape
        arrays = {"embedding": whole.token, "position": whole.table, "norm": whole.final}
        if block.part in arrays:
            assert arrays[block.part][side.name].shape == block.shape
