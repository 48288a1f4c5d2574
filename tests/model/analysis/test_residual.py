import copy

import numpy as np
import pytest
import torch

from headlight.model.analysis import residual
from headlight.model.masks import Masks
from headlight.model.presets import PRESETS
from headlight.model.probing.capture import view
from tests.devices import here, within
from tests.model.common import (
    depths,
    encoding,
    in_short,
    random_ids,
    random_model,
    traced,
)


def random_trace(preset, pad_to=0, **sizes):
    model = view(random_model(preset, **sizes))
    return model, traced(model, encoding(random_ids(6)), encoding(random_ids(4)), pad_to=pad_to)


def expect_last_is_the_models_own(model, seen):
    *_, last = residual.stopped(model, seen)
    allowed = 1e-5 * max(1.0, np.abs(seen.logits).max())
    assert np.abs(last.numpy() - seen.logits).max() <= allowed
    found = residual.lens(model, seen)
    assert found.difference <= allowed
    assert (found.rank[-1] == 1).all() and np.array_equal(found.final[-1], found.probability[-1])
    assert np.array_equal(found.best[-1], seen.most_probable(1)[0][:, 0])
    assert np.abs(found.final[-1] - seen.most_probable(1)[1][:, 0]).max() <= within(1e-6)


@pytest.mark.parametrize("depth", [(2, 5), (1, 1), (3, 0)])
@pytest.mark.parametrize(
    "preset", in_short(PRESETS, "pre_norm", "van_dijck", "bloem", "decoder_only")
)
def test_stopping_is_leaving_out_the_layers_that_follow(preset, depth):
    sizes = dict(zip(("n_encoder_layers", "n_decoder_layers"), depth, strict=True))
    model, seen = random_trace(preset, 8, **{name: sizes[name] for name in depths(preset)})
    expect_last_is_the_models_own(model, seen)
    stack = seen.predicted.stack
    ids = [here(torch.tensor([text.ids])) for text in seen.texts.values()]
    stops = list(residual.stopped(model, seen))
    assert len(stops) == len(getattr(model, stack).layers) + 1
    answer = seen.logits.argmax(axis=-1)
    lens = residual.lens(model, seen)
    for layers, logits in enumerate(stops):
        shorter = copy.deepcopy(model)
        getattr(shorter, stack).layers = getattr(shorter, stack).layers[:layers]
        expected = shorter(*ids, *Masks().build(shorter, *ids))[0].cpu()
        assert (logits - expected).abs().max() <= within(1e-5)
        shares = expected.softmax(dim=-1).numpy()
        final = shares[np.arange(len(answer)), answer]
        assert np.abs(lens.probability[layers] - shares.max(axis=-1)).max() <= within(1e-6)
        assert np.abs(lens.final[layers] - final).max() <= within(1e-6)
        assert np.array_equal(lens.rank[layers], (shares > final[:, None]).sum(axis=-1) + 1)


def test_lengths_and_likeness_are_torchs():
    x, y = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(0))
    assert np.abs(residual.lengths(x.numpy()) - x.norm(dim=-1).numpy()).max() <= within(1e-6)
    expected = torch.nn.functional.cosine_similarity(x, y, dim=-1)
    assert np.abs(residual.cosine(x.numpy(), y.numpy()) - expected.numpy()).max() <= within(1e-6)
    assert residual.cosine(np.zeros((1, 8)), np.ones((1, 8))) == 0


def test_settled_is_the_first_depth_after_which_nothing_changes():
    best = np.array([[1, 5, 7, 2], [2, 5, 3, 2], [1, 5, 4, 9], [1, 5, 4, 2]])
    lens = residual.Lens(best, best, best, best, 0.0)
    assert lens.settled.tolist() == [2, 0, 2, 3]
