import pytest
import torch

from headlight.model.masks import causal_mask
from headlight.model.probing.capture import view
from headlight.model.probing.interventions import replace_head, replace_mask, replace_weights
from tests.devices import current, here
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


def test_a_change_gets_its_head_and_touches_no_other(model, attention, run):
    def into_output():
        """What each head gives the output projection: (batch, query, heads, d_head)."""
        received = []
        hook = attention.output.register_forward_pre_hook(lambda _, inputs: received.extend(inputs))
        run(model)
        hook.remove()
        return received[0].unflatten(-1, (attention.n_heads, -1))

    before = into_output()
    with replace_head(attention, HEAD, lambda output: 2 * output):
        after = into_output()
    factor = here(torch.ones(attention.n_heads, 1))
    factor[HEAD] = 2
    assert after.equal(before * factor)


@pytest.mark.parametrize(
    "change",
    [
        lambda attention: replace_head(attention, HEAD, torch.zeros_like),
        lambda attention: replace_mask(attention, here(torch.ones(5, 6, dtype=torch.bool)).tril()),
        lambda attention: replace_weights(attention, torch.zeros_like),
    ],
    ids=["head", "mask", "weights"],
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
