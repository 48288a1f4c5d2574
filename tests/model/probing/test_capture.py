import pytest
import torch

from headlight.model.masks import Masks
from headlight.model.presets import PRESETS
from headlight.model.probing.capture import capture, view
from headlight.model.probing.reference import Reference
from tests.devices import here
from tests.model.common import (
    assert_close,
    attentions,
    check_view,
    hooks,
    random_ids,
    random_model,
)


def run(model, src, tgt):
    return model(src, tgt, *Masks().build(model, src, tgt))


def test_hooks_are_there_in_the_block_and_nowhere_else():
    model = view(random_model())
    assert hooks(model) == 0
    with capture(model):
        assert hooks(model) == len(list(attentions(model)))
    assert hooks(model) == 0
    with pytest.raises(RuntimeError, match="in the block"), capture(model):
        raise RuntimeError("in the block")
    assert hooks(model) == 0


@pytest.mark.parametrize("name", [*PRESETS, "twin"])
def test_a_view_shares_weights_and_values_alone(name):
    check_view(Reference(random_model()) if name == "twin" else random_model(name))


def test_weights_are_seen_before_dropout():
    model = view(random_model(dropout=0.5)).train()
    with capture(model) as seen:
        run(model, random_ids(4, 6), random_ids(5, 3))
    for weights in seen.values():
        assert_close(weights.sum(dim=-1), here(torch.ones(weights.shape[:-1])))
