"""Greedy and beam search say the same with and without a cache, alone and in a batch."""

import pytest
import torch

from model import presets
from model.decoding import fused
from model.decoding.fused import FusedSteps
from model.decoding.search import Steps, beam_search, greedy_decode, length_penalty
from model.masks import Masks
from model.probing.capture import view
from model.probing.interventions import replace_head


@pytest.fixture(scope="module", params=["paper", "pre_norm"])
def model(request):
    torch.manual_seed(3)
    sizes = dict(vocab_size=40, d_model=32, n_heads=4, d_ff=64, dropout=0.1)
    model = presets.build(request.param, **sizes, n_encoder_layers=2, n_decoder_layers=3).eval()
    # Tied to the embedding, random weights would only repeat the last token.
    model.generator.weight = torch.nn.Parameter(torch.randn(40, 32))
    return model


@pytest.fixture(scope="module")
def src():
    torch.manual_seed(4)
    src = torch.randint(3, 40, (12, 9))
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
    tgt, sentences = torch.randint(3, 40, (len(src) * beam, 12)), len(src)
    for length in range(1, 13):
        logits = [steps(tgt[:, :length]) for steps in ways]
        for other in logits[1:]:
            torch.testing.assert_close(logits[0], other, rtol=0, atol=1e-5)
        # Beams change places and sentences end: the caches must follow.
        rows = torch.arange(sentences)[:, None] * beam + torch.randint(beam, (sentences, beam))
        tgt = tgt[rows.flatten()]
        kept = torch.randperm(sentences)[: max(sentences - 1, 2)].sort().values
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
    tgt = torch.tensor([[1, *ids, 2]])
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
    model.eval()
    for decode in (greedy_decode, beam_search):
        assert max(map(len, decode(model, src))) <= 11
