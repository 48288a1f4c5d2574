"""Attention where the masks of training would not let it."""

import numpy as np

from headlight.model import Masks, load
from headlight.model.analysis.leak import leaks

TEXT = "A dog runs."


def test_nothing_leaks_under_the_masks_of_training():
    for name in ("en-de", "reviews"):
        held = load(name)
        assert leaks(held.trace(TEXT)) == [] and leaks(held.trace(TEXT, pad_to=12)) == []


def test_what_leaks_without_them_is_counted_by_hand():
    trace = load("en-de").trace(TEXT, masks=Masks(causal=False))
    (found,) = leaks(trace)
    assert (found.kind, found.where) == ("decoder", "later tokens")
    for layer, heads in enumerate(trace.attention["decoder"]):
        shares = [np.triu(head, 1).sum(axis=1).mean() for head in heads]
        assert abs(found.shares[layer] - np.mean(shares)) <= 1e-6


def test_padding_leaks_by_kind():
    masks = Masks(src_padding=False, memory_padding=False)
    trace = load("en-de").trace(TEXT, masks=masks, pad_to=12)
    found = {leak.kind: leak for leak in leaks(trace)}
    assert set(found) == {"encoder", "cross"}
    assert {leak.where for leak in found.values()} == {"padding"}
    n, rows = len([t for t in trace.src.tokens if t != "<pad>"]), trace.tgt.tokens.index("<pad>")
    expected = trace.attention["cross"][:, :, :rows, n:].sum(axis=-1).mean(axis=(1, 2))
    assert np.abs(found["cross"].shares - expected).max() <= 1e-6
