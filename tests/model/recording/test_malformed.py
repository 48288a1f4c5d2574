"""Weights that are none get a sentence."""

import numpy as np
import pytest
import torch

from headlight.model import record
from headlight.model.recording.weights import CannotRecord
from tests.model.recording.models import TOKENS, Own, inputs_of, model_of, some

KINDS = 25


def malformed(seed):
    """Weights that are no weights."""
    weights, layers = some().copy(), [torch.from_numpy(layer[None]) for layer in some()]
    random = np.random.default_rng(seed)
    place = tuple(random.integers(0, n) for n in weights.shape)
    match seed % KINDS:
        case 0:
            weights[place] = np.nan
        case 1:
            weights[place] = -random.random() - 0.01
        case 2:
            weights[place] += 0.1 + random.random()
        case 3:
            weights[place[:3]] *= 0.1 + 0.8 * random.random()
        case 4:
            weights = np.log(weights)
        case 5:
            weights = weights[0, 0, 0]
        case 6:
            weights = weights[None, None]
        case 7:
            weights = weights[..., : random.integers(1, 5)]
        case 8:
            weights = weights[:, :, :0]
        case 9:
            weights = weights[:0]
        case 10:
            weights = weights.astype(object)
            weights[place] = "x"
        case 11:
            weights = weights.astype(str)
        case 12:
            weights = weights + 1j
        case 13:
            weights = [*layers[:1], None]
        case 14:
            weights = [layers[0], layers[1][:, :2]]
        case 15:
            weights = [layers[0], layers[1][..., :3, :3]]
        case 16:
            weights = {"attentions": None, "logits": layers[0]}
        case 17:
            weights = {}
        case 18:
            weights = {"encoder.0": layers[0], "encoder.1": "nothing"}
        case 19:
            weights = {"sequences": torch.zeros(1, 3), "attentions": (layers,) * 2 + ((),)}
        case 20:
            weights = [layers]
        case 21:
            weights = [torch.empty(1, 4, 5, 5, device="meta")]
        case 22:
            weights = random.choice([None, "cross", 3.5, b"x", True], 1)[0]
        case 23:
            weights = [[[0.5, 0.5], [1.0]]]
        case 24:
            weights = weights > 0.1
    return weights


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ((1, 2, 3, 0), np.nan, "layer 2, head 3, row 4"),
        ((0, 0, 0, 4), np.inf, "layer 1, head 1, row 1"),
        ((1, 3, 4, 1), -0.2, "layer 2, head 4, row 5"),
        ((0, 1, 2, 2), 1.5, "layer 1, head 2, row 3"),
        ((1, 0, 1, 1), 0.0, "layer 2, head 1, row 2"),
    ],
)
def test_what_is_wrong_is_named(place, value, says):
    weights = some().copy()
    weights[place] = value
    with pytest.raises(ValueError, match=says):
        record(weights, TOKENS)


@pytest.mark.parametrize(
    "seeds",
    [range(KINDS), pytest.param(range(KINDS, 12 * KINDS), marks=pytest.mark.long)],
    ids=["each", "many"],
)
def test_each_malformed_one_gets_a_sentence(seeds):
    for seed in seeds:
        with pytest.raises(CannotRecord) as told:
            record(malformed(seed), TOKENS)
        sentence = str(told.value)
        assert sentence.endswith((".", "?")) and len(sentence) <= 300, (seed, sentence)
        assert "\n" not in sentence and "Traceback" not in sentence, (seed, sentence)


@pytest.mark.parametrize(
    ("name", "cells"),
    [("llama", 3 * 4 * 9 * 9), ("bloom", 3 * 4 * 9 * 9),
     ("bart", 4 * (2 * 9 * 9 + 3 * 6 * 6 + 3 * 6 * 9))],
)  # fmt: skip
def test_weights_that_do_not_fit_are_refused_before_any_is_made(name, cells, monkeypatch):
    model, inputs, made = model_of(name), inputs_of(name), []
    softmax = torch.nn.functional.softmax

    def kept(*args, **kwargs):
        made.append(softmax(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr("torch.nn.functional.softmax", kept)
    monkeypatch.setattr("headlight.model.probing.trace.available", lambda: 2 * 12 * cells)
    record(model, inputs=inputs)
    assert made
    made.clear()
    monkeypatch.setattr("headlight.model.probing.trace.available", lambda: 2 * 12 * cells - 2)
    with pytest.raises(CannotRecord, match=r"The weights of all heads for 9 .* The limit is"):
        record(model, inputs=inputs)
    assert not made


def test_weights_of_torch_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr("headlight.model.probing.trace.available", lambda: 100)
    with pytest.raises(CannotRecord, match="The limit is"):
        record(Own(), inputs=(torch.zeros(1, 5, 16), torch.zeros(1, 4, 16)))
