"""Weights that are none get a sentence."""

import numpy as np
import pytest
import torch

from headlight.model import record
from headlight.model.recording.weights import CannotRecord
from tests.model.recording.models import TOKENS, Own, inputs_of, model_of, some


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
