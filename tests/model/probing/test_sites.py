"""What a model says of itself is what it is made of, and all that others need to know."""

import numpy as np
import pytest
import torch

from headlight.model.masks import Masks
from headlight.model.presets import PRESETS
from headlight.model.probing.capture import inputs_of, is_attention, outputs_of, view
from headlight.model.probing.sites import (
    attention_at,
    embedding_of,
    kinds_of,
    layers_of,
    parts_at,
    predicted_side,
    sublayers_of,
)
from headlight.model.probing.trace import read_of, trace
from headlight.model.transformer import Embedding
from tests import odd
from tests.devices import here
from tests.model.common import encoding, hooks, random_ids, random_model, run_of

ALL = [*PRESETS, odd.NAME]


@pytest.fixture(params=ALL)
def model(request, monkeypatch):
    monkeypatch.setitem(PRESETS, odd.NAME, odd.ODD)
    return view(random_model(request.param))


def pair():
    return encoding(random_ids(6)), encoding(random_ids(4))


def test_every_attention_is_a_site_and_every_site_an_attention(model):
    softmaxes = {
        name.rpartition(".")[0] for name, m in model.named_modules() if is_attention(name, m)
    }
    assert {site.name for site in model.sites()} == softmaxes
    assert len(model.sites()) == len(softmaxes)
    for site in model.sites():
        attention = attention_at(model, site)
        assert (site.n_heads, site.n_key_heads) == (attention.n_heads, attention.n_heads)


def test_every_embedding_and_layer_belongs_to_a_side(model):
    embeddings = {id(part) for part in model.modules() if isinstance(part, Embedding)}
    assert {id(embedding_of(model, side)) for side in model.sides()} == embeddings
    blocks = {id(parts_at(model, site).layer) for site in model.sites()}
    assert {id(layer) for side in model.sides() for layer in layers_of(model, side)} == blocks


def test_sites_say_where_queries_and_keys_come_from(model):
    """Texts of different lengths tell which one an attention was given."""
    names = [side.name for side in model.sides()]
    inputs = {}
    handles = [
        attention_at(model, site).register_forward_pre_hook(
            lambda _, given, site=site: inputs.setdefault(site, []).append(given[:2])
        )
        for site in model.sites()
    ]
    lengths = dict(zip(names, (7, 5), strict=False))
    ids = [here(torch.randint(3, 53, (1, lengths[name]))) for name in names]
    model(*ids, *Masks().build(model, *ids))
    for handle in handles:
        handle.remove()
    for site, [(query, key)] in inputs.items():
        assert query.shape[1] == lengths[site.query_side]
        assert key.shape[1] == lengths[site.key_side]


def test_a_sites_norm_goes_with_its_attention_and_another_with_what_follows(model):
    ids = [
        here(torch.tensor([text.ids])) for text in read_of(model, run_of(model, *pair())).values()
    ]
    for site in model.sites():
        block = parts_at(model, site)
        parts = {"attention": block.attention, "norm": block.norm, "next": block.next_norm}
        with inputs_of(parts) as inputs:
            model(*ids, *Masks().build(model, *ids))
        assert list(inputs) in (["attention", "norm", "next"], ["norm", "attention", "next"])
        assert sublayers_of(block.layer)[-1][1] is block.feed_forward


def test_masks_concern_the_sites_that_say_so(model):
    """With a switch off, the weights of its sites alone lose their zeros."""
    run = run_of(model, *pair(), pad_to=9)
    base = trace(model, run)
    for switch in ("causal", "src_padding", "tgt_padding", "memory_padding"):
        concerned = {site.kind for site in model.sites() if switch in site.masks}
        off = trace(model, run_of(model, *pair(), Masks(**{switch: False, "causal": False}), 9))
        on = trace(model, run_of(model, *pair(), Masks(causal=False), 9))
        if switch == "causal":
            on = base
        for kind in base.attention:
            shown = (off.attention[kind] == 0).mean() < (on.attention[kind] == 0).mean()
            assert shown == (kind in concerned), (switch, kind)


def test_a_trace_has_what_each_site_and_side_did(model):
    run = run_of(model, *pair(), pad_to=9)
    modules = {site: attention_at(model, site).softmax for site in model.sites()}
    seen = trace(model, run)
    with outputs_of(modules) as outputs, torch.no_grad():
        ids = [here(torch.tensor([text.ids])) for text in seen.texts.values()]
        logits = model(*ids, *run.masks.build(model, *ids))
    for kind, sites in kinds_of(model.sites()).items():
        assert seen.kinds[kind] == sites
        for i, site in enumerate(sites):
            np.testing.assert_array_equal(seen.attention[kind][i], outputs[site][0].cpu())
            query, key = seen.texts_of(kind)
            assert seen.scores[kind][i].shape == (site.n_heads, len(query.ids), len(key.ids))
    np.testing.assert_array_equal(seen.logits, logits[0].cpu())
    assert seen.predicted == predicted_side(model)
    assert hooks(model) == 0


def test_a_kind_may_stand_in_some_layers_alone(monkeypatch):
    monkeypatch.setitem(PRESETS, odd.NAME, odd.ODD)
    seen = trace(random_model(odd.NAME), run_of(random_model(odd.NAME), *pair()))
    assert [site.layer for site in seen.kinds[odd.KIND]] == [odd.LAYER]
    assert seen.attention[odd.KIND].shape == (1, 4, 7, 5)
    table = seen.to_dataframe()
    assert set(table.layer[table.attention == odd.KIND]) == {odd.LAYER + 1}
