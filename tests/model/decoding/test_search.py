"""Greedy and beam search say the same with and without a cache, alone and in a batch."""

import gc
import weakref

import pytest
import torch

from headlight.model import presets
from headlight.model.decoding import cache, fused
from headlight.model.decoding.cache import OneByOne
from headlight.model.decoding.fused import FusedSteps
from headlight.model.decoding.search import (
    Steps,
    beam_search,
    first_token,
    greedy_decode,
    length_penalty,
    longest,
    steps_for,
)
from headlight.model.masks import Masks
from headlight.model.probing.capture import capture, view
from headlight.model.probing.interventions import replace_head
from headlight.model.transformer import MultiHeadAttention
from tests.devices import here, within
from tests.model.common import random_ids, random_model

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


@pytest.mark.parametrize("decode", [greedy_decode, beam_search])
def test_cache_changes_nothing(model, src, ends, decode):
    with_cache, without = decode(model, src), decode(model, src, use_cache=False)
    assert with_cache == without
    assert len({len(ids) for ids in with_cache}) > 2  # they did end at different steps


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
def test_captures_see_one_query_row_a_step(model, src):
    """Of the attentions, by hooks on what is inside them and on themselves."""
    steps = Steps(view(model), src, Masks(), 4, 1, cached=True)
    wanted = ("decoder.layers.1.self_attn", "decoder.layers.1.cross_attn")
    for length in range(1, 4):
        with capture(steps.model, lambda name, part: name.startswith(wanted)) as outputs:
            steps(here(torch.full((len(src), length), 5)))
        own, cross = (outputs[f"{name}.softmax"] for name in wanted)
        assert own.shape == (len(src), 4, 1, length)
        assert cross.shape == (len(src), 4, 1, src.shape[1])
        assert outputs["decoder.layers.1.self_attn"].shape == (len(src), 1, 32)


def test_a_cache_leaves_the_model_as_it_is(model, src):
    own = view(model)
    before = {name: (module, type(module)) for name, module in own.named_modules()}
    one_by_one = OneByOne(own, 4)
    assert before == {name: (module, type(module)) for name, module in own.named_modules()}
    assert "keys_values" not in vars(own.decoder.layers[0].self_attn)
    found = dict(one_by_one.model.named_parameters(remove_duplicate=False))
    ours = dict(own.named_parameters(remove_duplicate=False))
    assert found.keys() == ours.keys() and all(found[name] is ours[name] for name in ours)


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


def test_an_attention_that_no_cache_fits_is_decoded_without():
    model, src = random_model(), random_ids(7, 5)
    expected = greedy_decode(model, src)
    own = OwnWay(model.config.d_model, model.config.n_heads)
    own.load_state_dict(model.decoder.layers[0].self_attn.state_dict())
    model.decoder.layers[0].self_attn = here(own.eval())
    assert not cache.fits(model) and not fused.fits(model)
    assert greedy_decode(model, src) == expected


@pytest.mark.parametrize("decode", [greedy_decode, beam_search])
def test_a_system_without_a_first_token_is_told_so(decode):
    with pytest.raises(ValueError, match=r"no token that starts a target.*-1"):
        decode(random_model(bos_id=-1), random_ids(5))


def test_the_first_token_may_be_the_first_of_all():
    assert first_token(random_model(bos_id=0, pad_id=3).config) == 0


@pytest.mark.parametrize("decode", [greedy_decode, beam_search])
def test_a_system_without_a_last_token_writes_until_there_is_no_room(decode):
    targets = decode(random_model(eos_id=-1), random_ids(5, 3), max_length=7)
    assert [len(ids) for ids in targets] == [7, 7]


@pytest.mark.parametrize("decode", [greedy_decode, beam_search])
def test_batch_equals_one_by_one(model, src, ends, decode):
    alone = [decode(model, row[row != 0][None], max_length=20)[0] for row in src]
    assert decode(model, src, max_length=20) == alone


def test_beam_of_one_is_greedy(model, src, ends):
    assert beam_search(model, src, beam=1) == greedy_decode(model, src)


def test_beam_without_end_is_greedy(model, src):
    assert beam_search(model, src, beam=1, max_length=7) == greedy_decode(model, src, 7)


@torch.no_grad()
def log_probability(model, src, ids, alpha):
    """Of one target, eos included, divided as beam search divides."""
    tgt = here(torch.tensor([[1, *ids, 2]]))
    masks = Masks().build(model, src, tgt[:, :-1])
    logp = model(src, tgt[:, :-1], *masks).log_softmax(-1)[0]
    return logp.gather(1, tgt[0, 1:, None]).sum().item() / length_penalty(len(ids) + 1, alpha)


def test_wider_beam_finds_the_best(model, src, ends):
    """A beam as wide as all targets of two tokens is an exhaustive search."""
    alpha, one = 0.6, src[1:2, :3]
    found = beam_search(model, one, beam=40 * 40, alpha=alpha, max_length=3)[0]
    values = {
        ids: log_probability(model, one, ids, alpha)
        for ids in [(), *[(a,) for a in range(40) if a != 2]]
        + [(a, b) for a in range(40) for b in range(0, 40, 3) if 2 not in (a, b)]
    }
    assert log_probability(model, one, found, alpha) >= max(values.values()) - 1e-5


def test_length_penalty_is_that_of_the_paper():
    assert length_penalty(1, 0.6) == 1
    assert length_penalty(13, 0.5) == pytest.approx(3**0.5)


def test_cache_needs_the_causal_mask(model, src):
    with pytest.raises(ValueError, match="causal"):
        greedy_decode(model, src, masks=Masks(causal=False))
    greedy_decode(model, src, 4, Masks(causal=False), use_cache=False)


def test_length_is_limited_by_the_model(src):
    torch.manual_seed(0)
    sizes = dict(vocab_size=40, d_model=16, n_heads=2, d_ff=16, dropout=0.0)
    model = presets.build("paper", **sizes, max_length=12, n_encoder_layers=1, n_decoder_layers=1)
    here(model.eval())
    for decode in (greedy_decode, beam_search):
        assert max(map(len, decode(model, src))) <= 11


def test_length_grows_with_the_source():
    config = random_model().config
    assert longest(config, 3) == min(26, config.max_length - 1)
    assert longest(config, 10**6) == config.max_length - 1


@pytest.mark.parametrize("cached", [True, False])
def test_a_cache_is_used_where_one_is_asked_for(model, src, cached):
    steps = steps_for(model, src, Masks(), 12, 1, cached)
    assert isinstance(steps, Steps) is not cached
    if not cached:
        assert not steps.one_by_one
