import pytest
import torch

from headlight.model.masks import Masks
from tests.model.common import ALL_MASKS, random_ids, random_model

PAD, MODEL = 0, random_model()


@pytest.mark.parametrize("masks", ALL_MASKS, ids=str)
def test_build_is_what_the_switches_say(masks):
    src, tgt = random_ids(3, 6, 1), random_ids(5, 2, 4)
    shapes = [(3, 1, 6, 6), (3, 1, 5, 5), (3, 1, 5, 6)]
    allowed = [
        lambda b, q, k: not masks.src_padding or src[b, k] != PAD,
        lambda b, q, k: (
            (not masks.causal or k <= q) and (not masks.tgt_padding or tgt[b, k] != PAD)
        ),
        lambda b, q, k: not masks.memory_padding or src[b, k] != PAD,
    ]
    for mask, shape, may in zip(masks.build(MODEL, src, tgt), shapes, allowed, strict=True):
        batch, _, queries, keys = shape
        expected = [
            [[bool(may(b, q, k)) for k in range(keys)] for q in range(queries)]
            for b in range(batch)
        ]
        built = torch.ones(shape, dtype=torch.bool) if mask is None else mask.expand(shape)
        assert built[:, 0].tolist() == expected


def test_none_where_nothing_is_masked():
    padded, full = random_ids(3, 6), random_ids(6, 6)
    off = Masks(causal=False)
    assert off.build(MODEL, full, full) == (None, None, None)
    assert Masks(False, False, False, False).build(MODEL, padded, padded) == (None, None, None)
    made = [mask is not None for mask in off.build(MODEL, padded, full)]
    assert made == [True, False, True]
    made = [mask is not None for mask in off.build(MODEL, full, padded)]
    assert made == [False, True, False]
