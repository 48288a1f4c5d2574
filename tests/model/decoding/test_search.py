"""Greedy and beam search say the same with and without a cache, alone and in a batch."""

import copy
import gc
import weakref
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from headlight.model import presets
from headlight.model.decoding import cache, fused, search
from headlight.model.decoding.fused import FusedSteps
from headlight.model.decoding.search import (
    Steps,
    beam_search,
    greedy_decode,
    steps_for,
)
from headlight.model.families.parts import ActivatedFeedForward
from headlight.model.masks import Masks
from headlight.model.probing.capture import view
from headlight.model.probing.interventions import replace_head
from headlight.model.transformer import MaskedSoftmax, MultiHeadAttention
from headlight.model.variants import PrunedSoftmax
from tests.devices import here, within
from tests.model.common import in_short, max_difference, random_ids, random_model

DECODING = [name for name in presets.PRESETS if any(side.writes for side in presets.sides(name))]


@pytest.fixture(scope="module", params=["paper", "pre_norm"])
def model(request):
    torch.manual_seed(3)
    sizes = dict(vocab_size=40, d_model=32, n_heads=4, d_ff=64, dropout=0.1)
    model = presets.build(request.param, **sizes, n_encoder_layers=2, n_decoder_layers=3).eval()
    # Tied to the embedding, random weights would only repeat the last token.
    model.generator.weight = torch.nn.Parameter(torch.randn(40, 32))
    return here(model)


@pytest.fixture(scope="module")
def src():
    torch.manual_seed(4)
    src = here(torch.randint(3, 40, (12, 9)))
    for row, length in enumerate([9, 3, 5, 9, 1, 7, 8, 2, 9, 6, 4, 9]):
        src[row, length - 1] = 2
        src[row, length:] = 0
    return src


@pytest.fixture
def ends(model):
    """Make eos the answer now and then: random weights seldom end a sentence."""

    def more_eos(module, inputs, logits):
        boost = torch.zeros_like(logits)
        boost[..., 2] = logits.std(dim=-1) * 1.5
        return logits + boost

    handle = model.generator.register_forward_hook(more_eos)
    yield
    handle.remove()


@torch.inference_mode()
@pytest.mark.parametrize("beam", [1, 3])
def test_logits_by_all_ways(model, src, beam):
    """Without a cache, with one through the modules, and in few operations."""
    ways = [
        Steps(model, src, Masks(), 12, beam, cached=False),
        Steps(model, src, Masks(), 12, beam, cached=True),
        FusedSteps(model, src, Masks(), 12, beam),
    ]
    tgt, sentences = here(torch.randint(3, 40, (len(src) * beam, 12))), len(src)
    for length in range(1, 13):
        logits = [steps(tgt[:, :length]) for steps in ways]
        for other in logits[1:]:
            largest = max(1.0, float(logits[0].abs().max()))
            torch.testing.assert_close(logits[0], other, rtol=0, atol=within(1e-5) * largest)
        # Beams change places and sentences end: the caches must follow.
        rows = here(
            torch.arange(sentences)[:, None] * beam + torch.randint(beam, (sentences, beam))
        )
        tgt = tgt[rows.flatten()]
        kept = here(torch.randperm(sentences)[: max(sentences - 1, 2)].sort().values)
        for steps in ways:
            steps.reorder(rows.flatten())
            steps.keep(kept)
        tgt = tgt.view(sentences, beam, 12)[kept].flatten(0, 1)
        sentences = len(kept)


def test_hooks_see_decoding(model, src):
    """A switched-off head is off in decoding too: hooks send it through the modules."""
    own = view(model)
    assert fused.fits(own)
    with replace_head(own.decoder.layers[0].cross_attn, 1, torch.zeros_like):
        assert not fused.fits(own)
        changed = greedy_decode(own, src)
        assert changed == greedy_decode(own, src, use_cache=False)
    assert changed != greedy_decode(own, src) == greedy_decode(model, src)


@torch.inference_mode()
def test_a_cache_dies_with_its_view(model, src):
    """At once: a cycle would keep keys and values until the garbage collector comes."""
    gc.disable()
    try:
        steps = Steps(view(model), src, Masks(), 4, 1, cached=True)
        steps(here(torch.full((len(src), 1), 5)))
        caches = [*map(weakref.ref, (*steps.one_by_one.growing, *steps.one_by_one.fixed))]
        assert len(caches) == 6 and all(cache() for cache in caches)
        del steps
        assert not any(cache() for cache in caches)
    finally:
        gc.enable()


@pytest.mark.parametrize("preset", DECODING)
@torch.inference_mode()
def test_every_preset_that_writes(preset):
    """Through the modules, with a cache and without."""
    model = random_model(preset)
    src = random_ids(7, 5, 6)
    assert cache.fits(model)
    for beam in (1, 2):
        ways = [Steps(model, src, Masks(), 9, beam, cached) for cached in (True, False)]
        tgt = random_ids(*[9] * len(src) * beam)
        for length in range(1, 10):
            cached, whole = (steps(tgt[:, :length]) for steps in ways)
            torch.testing.assert_close(cached, whole, rtol=0, atol=within(1e-5))
    assert greedy_decode(model, src) == greedy_decode(model, src, use_cache=False)


class OwnWay(MultiHeadAttention):
    """An attention that takes its keys and values in a way of its own: no cache can stand there."""

    def forward(self, query, key, value, mask=None):
        q, k, v = (self.split(part(x)) for part, x in
                   ((self.query, query), (self.key, key), (self.value, value)))  # fmt: skip
        heads = self.softmax(self.scores(q, k), mask) @ v
        return self.output(heads.transpose(1, 2).flatten(2))


class Nothing(MaskedSoftmax):
    """No weight at all."""

    def forward(self, scores, mask=None):
        return torch.zeros_like(scores)


class Window(MaskedSoftmax):
    """Each token attends to itself and the one before; by the places of rows, as one writes it who
    knows nothing of a cache."""

    def forward(self, scores, mask=None):
        i, j = torch.arange(scores.shape[-2])[:, None], torch.arange(scores.shape[-1])
        near = (i - j).abs() < 2
        return super().forward(scores, here(near) if mask is None else mask & here(near))


def put(name, make):
    """Another part in every decoder layer; its parameters those that were there."""

    def change(model):
        for layer in model.decoder.layers:
            old = layer.get_submodule(name)
            new = here(make(old)).eval()
            new.load_state_dict(old.state_dict(), strict=False)
            layer.set_submodule(name, new)

    return change


def sizes_of(old):
    return old.linear1.in_features, old.linear1.out_features


def backwards(model):
    """By an attribute of an instance, as one tries something out."""
    for layer in model.decoder.layers:
        softmax = layer.self_attn.softmax
        softmax.forward = lambda scores, mask=None: MaskedSoftmax()(-scores, mask)


def begins_with_padding(model):
    model.config = replace(model.config, pad_id=1)  # its bos_id


SWAPPED = {  # part → a change of a model that is not the paper's then
    "no cross-attention": put("cross_attn.softmax", lambda old: Nothing()),
    "pruned": put("cross_attn.softmax", lambda old: PrunedSoftmax(old, range(4))),
    "a window": put("self_attn.softmax", lambda old: Window()),
    "an activation": put("feed_forward", lambda old: ActivatedFeedForward(*sizes_of(old), "silu")),
    "no norm": put("norm2", lambda old: nn.Identity()),
    "a method": backwards,
    "its beginning": begins_with_padding,
}  # fmt: skip


IN_SHORT = "no cross-attention", "pruned", "a window", "no norm", "a method", "its beginning"


@pytest.mark.parametrize("what", in_short(SWAPPED, *IN_SHORT))
@torch.inference_mode()
def test_a_part_that_somebody_swapped_writes_the_same_by_all_ways(model, src, what):
    """Token by token; and it does something."""
    model = copy.deepcopy(model)
    for parameter in model.decoder.parameters():
        parameter += torch.randn_like(parameter) / 5  # biases too
    changed = copy.deepcopy(model)
    SWAPPED[what](changed)
    targets = here(torch.randint(3, 40, (len(src), 9)))
    apart = 0
    ways = [steps_for(m, src, Masks(), 9, 1, cached)
            for m, cached in ((changed, True), (changed, False), (model, False))]  # fmt: skip
    for length in range(1, 10):
        quick, whole, plain = (steps(targets[:, :length]) for steps in ways)
        largest = max(1.0, float(whole[whole.isfinite()].abs().max()))
        torch.testing.assert_close(quick, whole, rtol=0, atol=within(1e-5) * largest)
        apart = max(apart, max_difference(whole, plain))
    assert apart > 1e-3


def test_an_attention_that_no_cache_fits_is_decoded_without():
    model, src = random_model(), random_ids(7, 5)
    expected = greedy_decode(model, src)
    own = OwnWay(model.config.d_model, model.config.n_heads)
    own.load_state_dict(model.decoder.layers[0].self_attn.state_dict())
    model.decoder.layers[0].self_attn = here(own.eval())
    assert not cache.fits(model) and not fused.fits(model)
    assert greedy_decode(model, src) == expected


@pytest.mark.parametrize("decode", [greedy_decode, beam_search])
def test_a_system_without_a_first_or_a_last_token(decode):
    """It is told so, or writes until there is no room."""
    with pytest.raises(ValueError, match=r"no token that starts a target.*-1"):
        decode(random_model(bos_id=-1), random_ids(5))
    assert len(decode(random_model(eos_id=-1, max_length=12), random_ids(5))[0]) == 11
    targets = decode(random_model(eos_id=-1), random_ids(5, 3), max_length=7)
    assert [len(ids) for ids in targets] == [7, 7]


@pytest.mark.parametrize("decode", [greedy_decode, beam_search])
def test_batch_equals_one_by_one(model, src, ends, decode):
    alone = [decode(model, row[row != 0][None], max_length=20)[0] for row in src]
    assert decode(model, src, max_length=20) == alone
    assert decode(model, src, max_length=20, use_cache=False) == alone
    assert len({len(ids) for ids in alone}) > 2  # they did end at different steps


def test_beam_of_one_is_greedy(model, src, ends):
    assert beam_search(model, src, beam=1) == greedy_decode(model, src)


def next_tokens(seed, ids):
    """Log-probabilities of five tokens behind some ids, made up."""
    chance = torch.Generator().manual_seed(hash((seed, *ids)))
    return (2 * torch.randn(5, generator=chance)).log_softmax(-1)


def best_by_hand(seed, beam, alpha, most):
    """The target that a beam search finds, written down as section 6.1 and Wu et al. tell it."""
    growing, ended = [(0.0, ())], []
    for length in range(1, most + 1):
        penalty = ((5 + length) / 6) ** alpha
        found = [(total + one, (*ids, token)) for total, ids in growing
                 for token, one in enumerate(next_tokens(seed, ids).tolist())]  # fmt: skip
        found = sorted(found, reverse=True)
        ended += [(total / penalty, ids[:-1]) for total, ids in found[:beam] if ids[-1] == 2]
        ended = sorted(ended, reverse=True)[:beam]
        growing = [one for one in found[: 2 * beam] if one[1][-1] != 2][:beam]
        if len(ended) == beam and ended[-1][0] >= growing[0][0] / penalty:
            return max(ended)[1]
    return max([*ended, (growing[0][0] / penalty, growing[0][1])])[1]


@pytest.mark.parametrize("beam", [1, 2, 3, 5**4])
def test_the_best_of_all_targets_of_made_up_probabilities(beam, monkeypatch):
    """Ended and not, under several length penalties; the last beam holds every target."""

    class Made(SimpleNamespace):
        def __call__(self, tgt):
            return here(torch.stack([next_tokens(self.seed, ids) for ids in tgt[:, 1:].tolist()]))

        def reorder(self, rows):
            pass

    lengths = set()
    for seed in range(12 if beam < 5 else 3):
        monkeypatch.setattr(search, "steps_for", lambda *_, seed=seed: Made(seed=seed))
        for alpha in (0.0, 0.6, 2.0):
            (found,) = beam_search(random_model(), random_ids(4), beam, alpha, max_length=4)
            assert tuple(found) == best_by_hand(seed, beam, alpha, 4), (seed, alpha)
            lengths.add(len(found))
    assert len(lengths) > 2


def test_cache_needs_the_causal_mask(model, src):
    with pytest.raises(ValueError, match="causal"):
        greedy_decode(model, src, masks=Masks(causal=False))
    greedy_decode(model, src, 4, Masks(causal=False), use_cache=False)
