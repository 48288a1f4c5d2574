"""torch.nn.Transformer with the same weights says the same: the proof on the Compare page."""

import numpy as np
import pytest
import torch
from allpairspy import AllPairs
from torch import nn

from headlight.model.masks import Masks
from headlight.model.probing.applying import PatchInputs
from headlight.model.probing.capture import capture, view
from headlight.model.probing.changes import CannotChange, parse
from headlight.model.probing.reference import Reference, capture_reference
from headlight.model.probing.run import Run
from headlight.model.probing.trace import trace
from tests.devices import within
from tests.model.common import (
    ALL_MASKS,
    PRESETS,
    SIZES,
    attentions,
    encoding,
    hooks,
    in_short,
    max_difference,
    random_ids,
    random_model,
    two_runs,
)

# Any two of the switches in every way.
SOME_MASKS = [Masks(*switches) for switches in AllPairs([[True, False]] * 4)]


def both(model, masks, src, tgt, twin=None):
    """(ours, theirs) of the logits and of every layer's weights."""
    own, twin = view(model), twin or Reference(model)
    with capture(own) as seen, capture_reference(twin.transformer) as theirs:
        logits = own(src, tgt, *masks.build(model, src, tgt)), twin(src, tgt, masks)
    assert hooks(own) == hooks(twin) == 0
    names = {module: name for name, module in own.named_modules()}
    weights = [
        (seen[f"{names[attention]}.softmax"], theirs[kind][layer])
        for kind, layer, attention in attentions(own)
    ]
    return logits, weights


def agree(model, masks, src, tgt, twin=None):
    logits, weights = both(model, masks, src, tgt, twin)
    assert len(weights) == len(list(attentions(model)))
    exact = logits[0].dtype == torch.float64
    tolerance = 1e-10 if exact else within(1e-5)
    largest = 1 if exact else max(1, logits[1].abs().max().item())
    assert max_difference(*logits) <= tolerance * largest
    for ours, theirs in weights:
        assert ours.shape == theirs.shape
        assert max_difference(ours, theirs) <= tolerance


def batch(vocab_size):
    """Three padded sentence pairs."""
    torch.manual_seed(2)
    return random_ids(7, 12, 3, vocab_size=vocab_size), random_ids(9, 4, 11, vocab_size=vocab_size)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("preset", [*PRESETS, "hyunwoongko"])
def test_random_weights_agree(preset, dtype):
    """Also of a system with an eps and a fill of its own."""
    model = random_model(preset).to(dtype)
    twin = Reference(model)
    for masks in ALL_MASKS if dtype == torch.float64 else SOME_MASKS:
        agree(model, masks, *batch(SIZES["vocab_size"]), twin)


def test_a_row_with_nothing_to_attend_to_is_nan_there_and_zeros_here():
    src, tgt = random_ids(4, 0), random_ids(5, 5)  # the second source is padding alone
    logits, weights = both(random_model(), Masks(), src, tgt)
    ours, theirs = logits
    assert ours.isfinite().all()
    assert theirs[0].isfinite().all() and theirs[1].isnan().all()
    ours, theirs = weights[0]
    assert not ours[1].any() and theirs[1].isnan().all()


class Gelu(nn.Module):
    """A feed-forward of another kind."""

    def __init__(self, part):
        super().__init__()
        self.linear1, self.linear2 = part.linear1, part.linear2

    def forward(self, x):
        return self.linear2(nn.functional.gelu(self.linear1(x)))


def swap_feed_forward(model):
    model.encoder.layers[1].feed_forward = Gelu(model.encoder.layers[1].feed_forward)


def swap_layer(model):
    model.decoder.layers[1] = random_model("pre_norm").decoder.layers[1]


def swap_eps(model):
    model.encoder.layers[0].norm1.eps = 1e-3


@pytest.mark.parametrize("swap", [swap_feed_forward, swap_layer, swap_eps, None])
def test_a_model_that_the_twin_cannot_express_is_refused(swap):
    """A classifier, too."""
    model = random_model("paper" if swap else "bloem")
    if swap:
        swap(model)
    with pytest.raises(ValueError, match="no counterpart"):
        Reference(model)


GIVEN = [
    "all.1.1=off", "cross.2=skip; encoder_feed_forward.1=skip", "encoder.1.2=uniform",
    "decoder.1.2=temperature:3.0; all.2=temperature:0.5", "encoder.1=hide:2; cross=hide:3",
    "decoder.2.1=mask:none; encoder.1.3=mask:window-4", "decoder=mask:strided-2",
    "decoder.1.4=forbid:3>1-2; cross.2.2=forbid:1-3>2", "decoder.1=allow:1>1-4",
    "all=positions:none", "source=positions:shifted-2; all.2.3=uniform; encoder.1.1=off",
    "cross.1=mean; decoder.2.2=mean", "cross=mean; cross.1.1=off; cross.2=mean",
    "cross.1.1=off; cross=mean; cross.1.1=mean", "encoder.1=off; encoder.1.2=mean",
]  # fmt: skip


@pytest.mark.parametrize("line", in_short(GIVEN, *GIVEN[::2]))
@pytest.mark.parametrize("preset", in_short(PRESETS, "pre_norm"))
def test_changes_that_pytorch_can_be_given_agree(preset, line):
    model = random_model(preset, n_encoder_layers=2, n_decoder_layers=2)
    chance = torch.Generator().manual_seed(1)
    means = {
        site.name: torch.randn(site.n_heads, model.config.d_head, generator=chance)
        for site in model.sites()
    }
    for pad_to in (0, 9):
        run = two_runs(model, pad_to=pad_to, changes=parse(line))[0]
        ours = trace(model, run, PatchInputs(means))
        theirs = Reference(model).trace(model, run, means)
        assert np.abs(ours.logits - theirs.logits).max() <= 1e-5 * max(1, np.abs(ours.logits).max())
        for kind, weights in ours.attention.items():
            assert np.abs(weights - theirs.attention[kind]).max() <= 1e-5
        plain = trace(model, two_runs(model, pad_to=pad_to)[0])
        assert np.abs(ours.logits - plain.logits).max() > 1e-4


@pytest.mark.parametrize("line", ["encoder.1.1=weight:1>2:0.5", "cross=patch"])
def test_what_pytorch_cannot_be_given_is_said(line):
    model = random_model("paper")
    run = Run((encoding(torch.tensor([5, 6])), encoding(torch.tensor([7]))), changes=parse(line))
    with pytest.raises(CannotChange, match=r"cannot be applied to torch\.nn\.Transformer"):
        Reference(model).trace(model, run)
