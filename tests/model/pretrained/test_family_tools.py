"""What reads and changes a model does so with other people's, groups and wide heads included."""

import copy
import dataclasses

import numpy as np
import pytest
import torch

from headlight.model.checkpoint import load
from headlight.model.decoding.generate import Beam, Greedy, Sampling
from headlight.model.decoding.search import greedy_decode
from headlight.model.probing.applying import PatchInputs
from headlight.model.probing.changes import HeadOff, Scope, parse
from headlight.model.probing.head_steps import compared, head_steps
from headlight.model.probing.sites import attention_at
from headlight.model.probing.trace import CannotRead, ids_of, read_of, trace
from tests.model.common import check_view, in_short
from tests.model.pretrained.folders import KINDS, TEXT, write

WITHIN = 2e-5


def logits(family, line="", model=None, given=PatchInputs()):
    model = model or family.model
    run = dataclasses.replace(family.run, changes=parse(line))
    return torch.tensor(trace(model, run, given).logits)


def test_a_view_shares_weights_and_values_alone(family):
    check_view(family.model)


def test_a_trace_has_the_scores_that_were_used(family):
    found, config = trace(family.model, family.run), family.model.config
    for kind, sites in found.kinds.items():
        attention = torch.tensor(found.attention[kind])
        torch.testing.assert_close(attention.sum(-1), torch.ones(attention.shape[:-1]))
        for layer, site in enumerate(sites):
            scores = torch.tensor(found.scores[kind][layer])
            if "causal" in site.masks:
                scores = scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -torch.inf)
            torch.testing.assert_close(scores.softmax(-1), attention[layer])
            key, query = found.key[kind][layer], found.query[kind][layer]
            assert len(query) == site.n_heads and len(key) == site.n_key_heads
            assert query.shape[-1] == key.shape[-1] == config.d_head
    for side in found.sides.values():
        assert side.table == bool(found.table[side.name].any())


def test_the_steps_of_a_head(family):
    model, found = family.model, trace(family.model, family.run)
    for site in model.sites():
        for head in range(site.n_heads):
            steps = head_steps(model, family.run, site, head)
            weights = found.attention[site.kind][site.layer, head]
            np.testing.assert_allclose(steps.weights, weights, atol=WITHIN)
            np.testing.assert_allclose(steps.scaled, found.scores[site.kind][site.layer][head])
            root = np.sqrt(model.config.d_head)
            np.testing.assert_allclose(steps.scores, steps.scaled * root, atol=1e-4, rtol=1e-4)
            np.testing.assert_allclose(steps.head_output, steps.weights @ steps.v, atol=WITHIN)
            np.testing.assert_allclose(steps.concatenated, steps.one_by_one, atol=WITHIN)
            assert steps.key_head == head * site.n_key_heads // site.n_heads
            queries, keys = compared(model, family.run, site.kind)
            q, k = (
                (steps.q, steps.k)
                if steps.q_rotated is None
                else (steps.q_rotated, steps.k_rotated)
            )
            np.testing.assert_allclose(queries[site.layer, head], q, atol=WITHIN)
            np.testing.assert_allclose(keys[site.layer, head], k, atol=WITHIN)
            if steps.gate is not None:
                feed = model.get_submodule(site.name.rpartition(".")[0]).feed_forward
                up = feed.linear1(torch.tensor(steps.forward_input)).numpy()
                np.testing.assert_allclose(steps.hidden, steps.gate * up, atol=WITHIN)


def test_rotated_queries_and_keys_keep_their_lengths(family):
    for site in family.model.sites():
        steps = head_steps(family.model, family.run, site, 0)
        assert (steps.q_rotated is None) == family.model.sides()[0].table
        if steps.q_rotated is not None:
            for turned, plain in ((steps.q_rotated, steps.q), (steps.k_rotated, steps.k)):
                lengths = np.linalg.norm(turned, axis=-1), np.linalg.norm(plain, axis=-1)
                np.testing.assert_allclose(*lengths, rtol=1e-5)
                np.testing.assert_allclose(turned[0], plain[0], atol=1e-6)  # position 0
                assert np.abs(turned[1:] - plain[1:]).max() > 1e-3


def without_a_head(model, site, head):
    """A copy that adds nothing of a head to the residual stream."""
    other = copy.deepcopy(model)
    attention = attention_at(other, site)
    width = attention.output.in_features // site.n_heads
    attention.output.weight[:, head * width : (head + 1) * width] = 0
    return other


def test_heads_off_one_by_one_and_in_a_sweep(family):
    model = family.model
    swept = family.checkpoint.swept(family.run)
    assert [change for (change,) in swept.changes] == [
        HeadOff(Scope(site.kind, site.layer, head))
        for site in model.sites()
        for head in range(site.n_heads)
    ]
    for (change,) in swept.changes[:: max(1, len(swept.changes) // 6)]:
        scope = change.scope
        site = next(s for s in model.sites() if scope.holds(s))
        expected = logits(family, model=without_a_head(model, site, scope.head))
        torch.testing.assert_close(logits(family, str(change)), expected, atol=1e-4, rtol=1e-4)
        assert (logits(family) - expected).abs().max() > 1e-4


def test_sweeps_of_tokens_and_sublayers(family):
    for what in ("tokens", "sublayers"):
        swept = family.checkpoint.swept(family.run, what)
        assert np.isfinite(swept.effects).all() and np.abs(swept.effects).max() > 1e-6


def argmax_of_whole_passes(model, src, steps):
    """Greedy decoding that keeps nothing from one token to the next."""
    config, both = model.config, len(model.sides()) > 1
    text = src.new_tensor([[config.bos_id]]) if both else src
    begun = text.shape[1]
    for _ in range(steps):
        ids = (src, text) if both else (text,)
        row = trace_logits(model, ids)
        row[config.pad_id if both else ...] += -torch.inf if both else 0
        best = int(row.argmax())
        text = torch.cat([text, text.new_tensor([[best]])], 1)
        if best == config.eos_id:
            break
    return text[0, begun:].tolist()


@torch.no_grad()
def trace_logits(model, ids):
    from headlight.model.masks import Masks

    return model(*ids, *Masks(tgt_padding=False).build(model, *ids))[0, -1].clone()


def test_what_is_written(family):
    checkpoint, model = family.checkpoint, family.model
    if model.sides()[-1].predicts != "next token":
        with pytest.raises(CannotRead, match="it writes no text"):
            checkpoint.generate(TEXT)
        return
    src = ids_of(model, read_of(model, family.run))[0]
    expected = argmax_of_whole_passes(model, src, 8)
    found = checkpoint.generate(TEXT, max_tokens=8)
    assert list(found.path) == expected and len(expected) > 1
    for how in (Greedy(), Beam(3), Sampling(seed=1)):
        some = checkpoint.generate(TEXT, how, max_tokens=6)
        assert 0 < len(some.path) <= 6
        assert trace(model, some.run).logits.shape[-1] == some.probabilities.shape[-1]
    if family.target:
        with_cache, without = (
            greedy_decode(model, src, 10, use_cache=use) for use in (True, False)
        )
        assert with_cache == without
        assert checkpoint.translate(TEXT).tokens


def test_hidden_tokens_in_a_run_with_padding(family):
    """Padding that the masks hide changes nothing."""
    if family.model.config.pad_id < 0:
        with pytest.raises(CannotRead, match="no padding token"):
            trace(family.model, dataclasses.replace(family.run, pad_to=20))
        return
    padded = trace(family.model, dataclasses.replace(family.run, pad_to=20))
    plain = logits(family)
    torch.testing.assert_close(
        torch.tensor(padded.logits)[: len(plain)], plain, atol=WITHIN, rtol=WITHIN
    )
    assert set(padded.texts[family.model.sides()[0].name].roles[-3:]) == {"pad"}
    assert padded.texts[family.model.sides()[-1].name].roles[-1] == "pad"


@pytest.mark.parametrize("line", ["", "decoder.1.2=off; decoder.2.1=uniform", "decoder=hide:2"])
@pytest.mark.parametrize("how", [Greedy(), Beam(3), Sampling(seed=1)], ids=str)
def test_a_decoder_alone_writes_the_same_with_a_cache(family, how, line, monkeypatch):
    """Its probabilities are those of the whole pass over what it wrote, changed or not."""
    if [side.name for side in family.model.sides()] != ["tgt"]:
        pytest.skip("it reads a source")
    run = dataclasses.replace(family.run, changes=parse(line))
    cached = family.checkpoint.generate(run, how, max_tokens=7)
    whole = family.checkpoint.trace_run(cached.run).logits[cached.first :]
    shares = torch.tensor(whole).double().softmax(dim=-1).numpy()[: len(cached.path)]
    assert np.abs(cached.probabilities[: len(shares)] - shares).max() <= 1e-5
    monkeypatch.setattr("headlight.model.decoding.cache.fits", lambda model: False)
    assert family.checkpoint.generate(run, how, max_tokens=7).path == cached.path


LONGER = [kind for kind, (name, *_) in KINDS.items() if name not in ("bert", "marian")]


@torch.no_grad()
@pytest.mark.parametrize("kind", in_short(LONGER, "llama-dynamic", "llama-longrope"))
def test_beyond_the_trained_length_it_writes_as_in_whole_passes(kind, tmp_path, monkeypatch):
    """All of a text turns by other angles then: those of transformers for a text of this length."""
    theirs = write(tmp_path, kind)
    checkpoint = load(tmp_path)
    for how in (Greedy(), Beam(2)):
        found = checkpoint.generate("the dog", how, max_tokens=24)
        start = checkpoint.trace("the dog").tgt.ids[: found.first + 1]
        for i in range(len(found.path)):
            logits = theirs(torch.tensor([[*start, *found.path[:i]]])).logits[0, -1]
            expected = logits.double().softmax(dim=-1).numpy()
            assert np.abs(found.probabilities[i] - expected).max() <= 1e-5, (how, i)
    with monkeypatch.context() as patch:
        patch.setattr("headlight.model.decoding.cache.fits", lambda model: False)
        whole = checkpoint.generate("the dog", Beam(2), max_tokens=24)
    assert whole.path == found.path and len(found.path) > 12
