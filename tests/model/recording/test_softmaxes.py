"""Attention in code of one's own, which neither transformers nor nn.MultiheadAttention computes."""

import numpy as np
import pytest
import torch

from headlight.model import record
from headlight.model.probing.changes import CannotChange
from headlight.model.recording.weights import CannotRecord
from tests.model.checking.whole.zoo import planted
from tests.model.recording.models import state_of

IDS = torch.arange(3, 9)[None]
HOW = {"inputs": (IDS,), "tokens": list("abcdef")}


def test_weights_are_those_of_the_formula_however_they_are_computed():
    torch.manual_seed(0)
    by_hand, fused = planted.MiniGPT(), planted.MiniGPT("sdpa")
    fused.load_state_dict(by_hand.state_dict())
    before = state_of(by_hand)
    one, other = (record(model, **HOW).attention["decoder"] for model in (by_hand, fused))
    assert state_of(by_hand) == before
    read = []
    hook = by_hand.h[0].attn.c_attn.register_forward_hook(lambda m, args, out: read.append(out))
    with torch.no_grad():
        by_hand.eval()(IDS)
    hook.remove()
    q, k, _ = (x[0].unflatten(-1, (4, -1)).transpose(0, 1) for x in read[0].chunk(3, -1))
    hidden = torch.ones(6, 6, dtype=torch.bool).triu(1)
    right = (q @ k.mT / 6**0.5).masked_fill(hidden, -torch.inf).softmax(-1)
    assert np.abs(one[0] - right.numpy()).max() < 1e-6
    assert np.abs(one - other).max() < 1e-6


def test_three_kinds_have_their_names():
    recorded = record(planted.Scratch(), inputs=(IDS, IDS[:, :4]))
    shapes = {kind: weights.shape for kind, weights in recorded.attention.items()}
    assert shapes == {"encoder": (2, 4, 6, 6), "decoder": (2, 4, 4, 4), "cross": (2, 4, 4, 6)}


def test_what_cannot_be_read_or_changed_is_said():
    with pytest.raises(CannotRecord, match="no attention that can be read"):
        record(torch.nn.Linear(3, 4), inputs=(torch.ones(2, 3),))
    with pytest.raises(CannotChange, match="can only be read"):
        record(planted.MiniGPT(), **HOW, changes="decoder.1.1=off")
