"""Local attention, of the preset window: its mask is the same for a whole text, a cached step, the
steps of a head, a change, and PyTorch's twin."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers.masking_utils import sliding_window_causal_mask_function

from headlight.model.masks import Masks, local_mask
from headlight.model.probing.capture import view
from headlight.model.probing.changes import parse
from headlight.model.probing.head_steps import head_steps
from headlight.model.probing.reference import Reference
from headlight.model.probing.run import Run
from headlight.model.probing.trace import trace
from headlight.model.variants import LocalTransformer
from tests.model.common import encoding, random_ids, random_model

WINDOW = 2


@pytest.fixture(scope="module")
def local():
    return random_model("window", window=WINDOW, n_decoder_layers=3)


@pytest.mark.parametrize("window", [1, 2, 5, 9])
def test_of_a_causal_mask_the_window_is_transformers(window):
    theirs, index = sliding_window_causal_mask_function(window), torch.arange(7)
    ours = local_mask(7, window) & torch.ones(7, 7, dtype=torch.bool).tril()
    expected = [[bool(theirs(0, 0, query, key)) for key in index] for query in index]
    assert ours.tolist() == expected


def test_a_token_reaches_as_far_as_layers_times_the_window(local):
    """In the encoder, on both sides; without a window it reaches all."""
    src = random_ids(12)
    changed = src.clone()
    changed[0, 6] = 3 + (changed[0, 6] - 2) % 50
    reach = local.config.n_encoder_layers * (WINDOW - 1)
    for model, far in ((local, reach), (random_model("paper"), 12)):
        masks = Masks().build(model, src, src)
        moved = (model.encode(src, masks[0]) - model.encode(changed, masks[0])).abs().sum(-1)[0]
        assert [bool(x) for x in moved > 0] == [abs(i - 6) <= far for i in range(12)]


def test_steps_of_a_head_and_changes_know_the_window(local):
    run = Run((encoding(random_ids(6)), encoding(random_ids(7))))
    uniform = Run(run.texts, changes=parse("encoder=uniform; decoder=uniform"))
    for kind in ("encoder", "decoder"):
        weights = trace(local, uniform).attention[kind]
        steps = head_steps(view(local), run, trace(local, run).kinds[kind][0], 0)
        length = weights.shape[-1]
        near = local_mask(length, WINDOW).numpy()
        allowed = near & np.tri(length, dtype=bool) if kind == "decoder" else near
        assert (steps.mask == allowed).all() and ((steps.weights > 0) == allowed).all()
        expected = allowed / allowed.sum(axis=1, keepdims=True)
        assert np.abs(weights - expected).max() <= 1e-6


class OfOneStack(LocalTransformer):
    def sites(self):
        windows = {"decoder": WINDOW}
        return tuple(replace(site, window=windows.get(site.kind, 0)) for site in super().sites())


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("kind", [LocalTransformer, OfOneStack])
def test_pytorchs_twin_has_the_same_window(local, causal, kind):
    local = kind(local.config).eval()
    run = Run((encoding(random_ids(6)), encoding(random_ids(7))), Masks(causal=causal))
    ours, theirs = trace(local, run), Reference(local).trace(local, run)
    assert np.abs(ours.logits - theirs.logits).max() <= 1e-5
    for kind, weights in ours.attention.items():
        assert np.abs(weights - theirs.attention[kind]).max() <= 1e-5
