import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from headlight.model.masks import Masks
from headlight.model.probing import position_tables
from headlight.model.probing.applying import applied
from headlight.model.probing.capture import view
from headlight.model.probing.changes import EVERY_KIND, Positioned, Scope
from headlight.model.probing.run import Run
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


def with_positions(run, kind, shift=0):
    """The same run with another kind of positions in all its texts."""
    positioned = Positioned(Scope(EVERY_KIND), kind, shift if kind == "shifted" else 0)
    return replace(run, changes=(positioned,))


@pytest.mark.parametrize("preset", PRESETS)
def test_a_pass_is_that_of_a_model_built_with_the_other_table(preset):
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
        found = trace(model, with_positions(run, kind, 6))
        for part, weights in found.attention.items():
            assert np.abs(weights - now.attention[part]).max() <= within(1e-6)
        assert np.abs(found.logits - now.logits).max() <= within(1e-5)
        is_own = kind == ("learned" if preset == "bloem" else "sinusoidal")
        assert np.array_equal(found.logits, before.logits) == is_own
    assert hooks(model) == 0


def expect_shuffled_rows(model, pair, pad_to=0):
    length, side = len(pair[0].ids), model.sides()[0]
    # A causal mask tells places apart, too: where it is what stands alone, it is off.
    masks = Masks(causal=len(model.sides()) > 1)
    run = run_of(model, *pair, masks, pad_to=pad_to)
    order = torch.randperm(length, generator=torch.Generator().manual_seed(3)).tolist()
    shuffled = replace(run, texts=(run.texts[0].take(order), *run.texts[1:]))
    for kind, is_blind in (("none", True), ("shifted", False)):
        passes = [trace(model, with_positions(one, kind)) for one in (run, shuffled)]
        before, after = (one.final[side.name] for one in passes)
        begins = int(side.begins)
        moved = [*range(begins), *(begins + at for at in order)]
        moved += range(len(moved), len(before))
        assert (np.abs(after - before[moved]).max() <= within(1e-5)) == is_blind
        if is_blind and side.predicts != "next token":  # else what comes next was moved, too
            assert np.abs(passes[0].logits - passes[1].logits).max() <= within(1e-4)


@pytest.mark.parametrize("tokens", [dict(bos_id=-1), dict(eos_id=-1), dict(bos_id=-1, eos_id=-1)])
@pytest.mark.parametrize("preset", ["paper", "bloem", "decoder_only"])
def test_a_model_without_special_tokens_shuffles_the_whole_text(preset, tokens):
    expect_shuffled_rows(random_model(preset, **tokens), random_pair())


@pytest.mark.parametrize("pad_to", [0, 12])
@pytest.mark.parametrize("preset", PRESETS)
def test_without_positions_a_shuffled_sentence_has_shuffled_rows(preset, pad_to):
    expect_shuffled_rows(random_model(preset), random_pair(), pad_to)


def test_writing_under_other_positions_gets_each_its_row():
    """With a cache, one token at a time; without, all at once."""
    from headlight.model.decoding.search import greedy_decode

    model, src = random_model(n_decoder_layers=1), random_ids(6)
    for kind in position_tables.POSITION_KINDS:
        with applied(model, with_positions(Run(()), kind, 3).changes):
            cached, whole = (greedy_decode(model, src, 9, use_cache=use) for use in (True, False))
        assert cached == whole
