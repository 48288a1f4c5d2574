"""What is kept of a long text is what a trace of it has, reduced."""

import gc
import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from headlight.model.probing import long_trace
from headlight.model.probing.long_trace import Layers, attention_of, heads_at, tile
from headlight.model.probing.run import Run
from headlight.model.probing.trace import TooLarge, trace
from tests.conftest import ROOT
from tests.model.common import encoding, hooks, load, random_ids, random_model

CHANGES = [
    "",
    "all.1=off; all.2.1=temperature:0.5",
    "all=hide:2",
    "all.1=mask:window-1; all.1.2=weight:2>2:0.7",
]
CELLS = 3  # along a side of a picture


@pytest.fixture(autouse=True)
def small_pictures(monkeypatch):
    monkeypatch.setattr(long_trace, "PICTURE_CELLS", CELLS)


def by_hand(weights: np.ndarray) -> np.ndarray:
    """The largest weight in each rectangle of neighbours, of which CELLS make a side."""
    *heads, n, m = weights.shape
    down, across = (-(-length // CELLS) for length in (n, m))
    cells = np.zeros((*heads, -(-n // down), -(-m // across)), np.float32)
    for row, column in np.ndindex(cells.shape[-2:]):
        block = weights[..., row * down :, :][..., :down, column * across :][..., :across]
        cells[..., row, column] = block.max(axis=(-1, -2))
    return cells


def assert_as_whole(model, run, given=()):
    """Everything that a long trace keeps or can compute again, against a trace that keeps all."""
    whole, kept = trace(model, run, *given), long_trace.long_trace(model, run, *given)
    assert not hooks(model) and kept.run == whole.run and kept.texts == whole.texts
    for name in ("table", "token", "final", "stream", "embedded"):
        ours, theirs = getattr(kept, name), getattr(whole, name)
        assert ours.keys() == theirs.keys()
        assert all(np.array_equal(ours[side], theirs[side]) for side in theirs), name
    for kind, weights in whole.attention.items():
        assert np.array_equal(kept.tiles[kind], by_hand(weights)), kind
        assert np.array_equal(kept.allowed(kind), whole.allowed(kind)), kind
        again = attention_of(model, kept)[kind]
        assert isinstance(again, Layers) and again.shape == weights.shape
        assert all(np.array_equal(*both) for both in zip(again, weights, strict=True)), kind
        for layer, site in enumerate(whole.kinds[kind]):
            heads = heads_at(model, kept, site)
            for part, name in (("weights", "attention"), *((n, n) for n in ("scores", "query",
                               "key", "value"))):  # fmt: skip
                assert np.array_equal(getattr(heads, part), getattr(whole, name)[kind][layer])
                assert not getattr(heads, part).flags.writeable
    assert not hooks(model) and attention_of(model, whole) is whole.attention
    count = min(long_trace.MOST, whole.logits.shape[-1]) if whole.following else None
    for ours, theirs in zip(kept.most_probable(count), whole.most_probable(count), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(kept.log_probabilities, whole.log_probabilities, rtol=1e-5)
    return kept


def test_logits_are_made_for_some_rows_at_a_time(monkeypatch):
    model = random_model("decoder_only")
    run = Run((encoding(random_ids(17)),))
    monkeypatch.setattr(long_trace, "MOST_LOGITS", 5 * model.config.vocab_size)
    rows = []
    hook = model.generator.register_forward_hook(lambda m, i, logits: rows.append(logits.shape[1]))
    long_trace.long_trace(model, run)
    hook.remove()
    assert rows == [5, 5, 5, 3]  # with <s>
    assert_as_whole(model, run)


def test_patches_from_another_run_are_patched_again():
    """Also where a layer's second attention reads what its first was patched to."""
    held = load("en-de")
    other = held.run("A woman sleeps.", "Ein Mann schläft.")
    run = held.run(
        "A man sleeps.", "Ein Mann schläft.", changes="decoder.2.1=patch; encoder=patch:2",
        other=other,
    )  # fmt: skip
    kept = assert_as_whole(held.model, run, (held.given(run),))
    plain = held.trace("A man sleeps.", "Ein Mann schläft.")
    site = plain.kinds["cross"][1]
    assert np.abs(heads_at(held.model, kept, site).weights - plain.attention["cross"][1]).max() > 0


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (3, 4), (7, 3), (10, 11)])
def test_a_tile_holds_the_largest_weights(shape):
    weights = torch.rand(2, *shape)
    assert np.array_equal(tile(weights).numpy(), by_hand(weights.numpy()))


def test_a_text_of_which_not_one_layer_fits_is_refused(monkeypatch):
    model = random_model("decoder_only", n_decoder_layers=3, n_heads=2)
    run = Run((encoding(random_ids(29)),))  # and <s>
    needed = 3 * 4 * 2 * 30**2
    monkeypatch.setattr("headlight.model.probing.trace.available", lambda: 2 * needed)
    long_trace.long_trace(model, run)
    with pytest.raises(TooLarge, match=r"of all heads for 30 tokens .* about 17 tokens fit\.$"):
        trace(model, run)
    monkeypatch.setattr("headlight.model.probing.trace.available", lambda: 2 * needed - 2)
    with pytest.raises(TooLarge, match=r"of one layer for 30 tokens .* about 29 tokens fit\.$"):
        long_trace.long_trace(model, run)


MEASURED = """
import json, resource, sys, torch
from headlight.model import presets
from headlight.model.probing.long_trace import long_trace
from headlight.model.probing.run import Run
from headlight.model.tokenizer import Encoding

torch.manual_seed(0)
torch.set_num_threads(1)
sizes = dict(vocab_size=50, d_model=32, n_heads=8, d_ff=32, max_length=1100)
model = presets.build("decoder_only", **sizes, n_decoder_layers=int(sys.argv[1])).eval()
ids = tuple(torch.randint(3, 50, (1024,)).tolist())
run = Run((Encoding(ids, tuple(map(str, ids)), tuple((i, i + 1) for i in range(1024))),))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
kept = long_trace(model.requires_grad_(False), run)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([1024 * (after - before), kept.nbytes, kept.tiles["decoder"].nbytes]))
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="no resource module there")
def test_memory_does_not_grow_with_heads_times_the_square_of_the_length():
    """8 heads attend among 1,025 tokens with 34 MB of weights in each layer. With 12 layers more
    a trace would take 12 × 34 MB more, of weights alone; this one, pictures and vectors."""
    peaks = []
    for layers in (4, 16):
        measured = subprocess.run(
            [sys.executable, "-c", MEASURED, str(layers)],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        peak, kept, tiles = json.loads(measured.stdout)
        assert tiles <= layers * 8 * 256**2 * 4
        peaks.append((peak, kept))
    layer = 4 * 8 * 1025**2
    (few, kept_of_few), (many, kept_of_many) = peaks
    assert few < 8 * layer
    # Twice: while pictures are put together.
    assert many - few < 2 * (kept_of_many - kept_of_few) + layer < 12 * layer


def test_what_is_kept_is_counted_once():
    model = random_model("decoder_only", n_decoder_layers=3)
    kept = long_trace.long_trace(model, Run((encoding(random_ids(20)),)))
    gc.collect()
    vectors = 4 * sum(vector.numel() for vector in kept.vectors["tgt"])
    assert vectors < kept.nbytes < 3 * vectors
