import pytest
import torch

from headlight.model.masks import causal_mask
from headlight.model.probing.capture import view
from headlight.model.probing.interventions import replace_head, replace_weights
from tests.devices import current
from tests.model.common import hooks, max_difference, random_ids, random_model

HEAD, LAYER = 2, 1


@pytest.fixture
def model():
    return view(random_model())


@pytest.fixture
def attention(model):
    return model.decoder.layers[LAYER].cross_attn


@pytest.fixture
def run():
    src, tgt = random_ids(4, 6), random_ids(5, 5)
    return lambda model: model(src, tgt, None, causal_mask(5, current()))


@pytest.mark.parametrize(
    "change",
    [
        lambda attention: replace_head(attention, HEAD, torch.zeros_like),
        lambda attention: replace_weights(attention, torch.zeros_like),
    ],
    ids=["head", "weights"],
)
def test_nothing_is_left_after_the_block(model, attention, run, change):
    before = run(model)
    with change(attention):
        assert hooks(model) == 1
        assert max_difference(run(model), before) > 1e-3
    assert hooks(model) == 0
    assert run(model).equal(before)
    with pytest.raises(RuntimeError, match="in the block"), change(attention):
        raise RuntimeError("in the block")
    assert hooks(model) == 0
