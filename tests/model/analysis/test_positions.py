import copy
import math

import numpy as np
import pytest
import torch

from headlight.model.analysis import positions
from headlight.model.masks import Masks
from headlight.model.probing import position_tables
from headlight.model.probing.capture import view
from headlight.model.probing.trace import trace
from headlight.model.transformer import Embedding, PositionalEncoding
from headlight.model.variants import LearnedPositions, PositionsFromOne
from tests.devices import here, within
from tests.model.common import (
    encoding,
    hooks,
    max_difference,
    random_ids,
    run_of,
)
from tests.model.common import random_model as any_model

ENCODER_DECODERS = ["paper", "pre_norm", "annotated", "hyunwoongko", "vanilla", "van_dijck"]
PRESETS = [*ENCODER_DECODERS, "bloem", "decoder_only"]


def random_model(preset="paper", **sizes):
    return view(any_model(preset, **sizes))


def random_pair(source=7, target=5):
    return encoding(random_ids(source)), encoding(random_ids(target))


@pytest.mark.parametrize("base", [1.0, 50.0, 10_000.0])
@pytest.mark.parametrize("d_model", [2, 7, 64])
def test_wavelengths_are_the_papers(d_model, base):
    pairs = np.arange(d_model // 2)
    for kind, first in ((PositionalEncoding, 0), (PositionsFromOne, 1)):
        found = positions.wavelengths(kind(16, d_model, base).table.numpy())
        expected = 2 * math.pi * base ** (2 * (pairs + first) / d_model)
        assert found == pytest.approx(expected, rel=1e-6)


def test_products_of_sinusoids_depend_on_distance_alone_and_those_of_a_learned_table_do_not():
    table = positions.sinusoids(40, 24, 10_000)
    products = positions.products(table)
    found = positions.by_distance(products)
    assert found.spread <= within(1e-6)
    frequencies = 10_000.0 ** (-np.arange(0, 24, 2) / 24)
    expected = np.cos(np.arange(40)[:, None] * frequencies).sum(axis=1)
    assert found.mean == pytest.approx(expected, abs=within(1e-6))
    assert products[3, 10] == pytest.approx(expected[7], abs=within(1e-6))
    learned = positions.by_distance(
        positions.products(np.random.default_rng(0).normal(size=(9, 4)))
    )
    assert learned.spread > 0.1
    assert (learned.low <= learned.mean).all() and (learned.mean <= learned.high).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("pair", "k"), [(0, 1), (0, 63), (3, 17), (11, 5)])
def test_sinusoids_further_on_are_turned(pair, k, dtype):
    p, i = torch.arange(1000, dtype=torch.float64)[:, None], torch.arange(12, dtype=torch.float64)
    angle = p * 10_000.0 ** (-i / 12)
    table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).to(dtype)
    assert max_difference(table.float(), PositionalEncoding(1000, 24).table) <= within(1e-6)
    found = positions.rotation(table.numpy(), pair, k)
    assert found.error <= (1e-12 if dtype is torch.float64 else 1e-6)
    turn = k * 10_000.0 ** (-pair / 12)
    expected = [[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]]
    assert found.matrix == pytest.approx(np.array(expected), abs=within(1e-6))


@pytest.mark.parametrize("own", [PositionalEncoding(30, 8), PositionsFromOne(30, 8), None])
def test_tables_of_every_kind(own):
    own = LearnedPositions(30, 8).requires_grad_(False) if own is None else own
    table, state = own(30), torch.random.get_rng_state()
    kinds = {
        kind: position_tables.table_of(kind, own, 30, shift=4)
        for kind in position_tables.POSITION_KINDS
    }
    assert torch.random.get_rng_state().equal(state)  # PyTorch's generator belongs to all
    assert kinds[position_tables.kind_of_table(own)].equal(table)
    assert kinds["none"].eq(0).all() and kinds["shifted"].equal(table[4:])
    for kind in ("sinusoidal", "learned"):
        assert max_difference(kinds[kind].norm(dim=-1), table.norm(dim=-1)) <= within(1e-5)
        assert kinds[kind].equal(position_tables.table_of(kind, own, 30))
    assert max_difference(kinds["sinusoidal"], kinds["learned"]) > 0.1


@pytest.mark.parametrize("preset", PRESETS)
def test_an_effect_is_that_of_a_model_built_with_the_other_table(preset):
    model = random_model(preset)
    run = run_of(model, *random_pair(), pad_to=9)
    before = trace(model, run)
    for kind in position_tables.POSITION_KINDS:
        built = copy.deepcopy(model)
        for embedding in (part for part in built.modules() if isinstance(part, Embedding)):
            table = position_tables.table_of(kind, embedding.position, 40, 6)
            embedding.position = LearnedPositions(*table.shape)
            embedding.position.weight.data.copy_(table)
        now = trace(here(built).requires_grad_(False), run)
        found = positions.effect(model, before, kind, 6)
        for part, moved in found.moved.items():
            expected = np.abs(now.attention[part] - before.attention[part]).sum(-1).mean(-1) / 2
            assert np.abs(moved - expected).max() <= within(1e-6)
        expected = positions.predictions(now)
        assert np.abs(found.answers.wanted - expected.wanted).max() <= within(1e-6)
        assert np.array_equal(found.answers.best, expected.best)
        is_own = kind == ("learned" if preset == "bloem" else "sinusoidal")
        assert all((moved.max() == 0) == is_own for moved in found.moved.values())
    assert hooks(model) == 0


def expect_shuffled_rows(model, pair, pad_to=0):
    length = len(pair[0].ids)
    # A causal mask tells places apart, too: where it is what stands alone, it is off.
    masks = Masks(causal=len(model.sides()) > 1)
    run = run_of(model, *pair, masks, pad_to=pad_to)
    order = torch.randperm(length, generator=torch.Generator().manual_seed(3)).tolist()
    none = positions.reordered(model, run, order, kind="none")
    own = positions.reordered(model, run, order)
    assert np.abs(none.after - none.before[list(none.order)]).max() <= within(1e-5)
    assert none.largest <= within(1e-5) < 1e-3 < own.largest
    assert none.moved.max() <= within(1e-5)
    assert np.diagonal(none.distances[:, list(none.order)]).max() <= within(1e-5)
    if model.sides()[0].predicts != "next token":  # else what comes next was moved, too
        change = np.abs(none.answers_after.wanted - none.answers_before.wanted)
        assert np.nanmax(change) <= within(1e-5)
    i, j = 1, 2
    far = np.linalg.norm(own.after[i].astype(float) - own.before[j].astype(float))
    far /= np.linalg.norm(own.before, axis=-1).mean()
    assert own.distances[i, j] == pytest.approx(far, rel=1e-5)
    in_place = [own.distances[i, j] for i, j in enumerate(own.order)]
    assert np.allclose(own.moved, in_place, rtol=1e-4)
    behind = length + model.sides()[0].begins
    assert list(none.order[behind:]) == list(range(behind, len(none.before)))


def test_what_follows_the_last_token_is_unknown_to_a_model_without_eos():
    pair = random_pair()
    for bos_id, ids in ((1, (1, *pair[1].ids)), (-1, pair[1].ids)):
        model = random_model(bos_id=bos_id, eos_id=-1)
        seen = trace(model, run_of(model, *pair))
        found = positions.predictions(seen)
        shares = torch.from_numpy(seen.logits.copy()).softmax(dim=-1).numpy()
        assert len(found.wanted) == len(found.best) == len(ids)
        assert found.wanted[:-1] == pytest.approx(shares[range(len(ids) - 1), ids[1:]])
        assert np.isnan(found.wanted[-1])


@pytest.mark.parametrize(
    ("pad_to", "tokens"), [(0, {}), (12, {}), (0, dict(bos_id=-1)), (0, dict(bos_id=-1, eos_id=-1))]
)
@pytest.mark.parametrize("preset", PRESETS)
def test_without_positions_a_shuffled_sentence_has_shuffled_rows(preset, pad_to, tokens):
    """The whole text, where the model has no special tokens."""
    expect_shuffled_rows(random_model(preset, **tokens), random_pair(), pad_to)
