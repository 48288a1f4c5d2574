"""A model is afterwards as it was, whatever happens meanwhile."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from torch import nn

from headlight.model import record
from headlight.model.recording.weights import CannotRecord
from tests.model.recording.models import ALL, SHORT, in_part, inputs_of, model_of, named, state_of


@pytest.mark.parametrize("name", named(ALL, SHORT))
def test_the_model_is_as_it_was(name):
    model, inputs = in_part(model_of(name)), inputs_of(name)
    before = state_of(model)
    record(model, inputs=inputs)
    assert state_of(model) == before


@pytest.mark.parametrize("name", named(ALL, SHORT))
def test_the_model_is_as_it_was_after_an_exception(name):
    model, inputs = in_part(model_of(name)), inputs_of(name)
    last = [m for m in model.modules() if isinstance(m, nn.Linear)][-1]
    handle = last.register_forward_hook(lambda *_: 1 / 0)
    before = state_of(model)
    with pytest.raises(CannotRecord, match="fails on this input: division by zero") as failed:
        record(model, inputs=inputs)
    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    assert state_of(model) == before
    handle.remove()
    broken = {k: v[:0] for k, v in inputs.items()}
    before = state_of(model)
    with suppress(CannotRecord):
        record(model, inputs=broken)
    assert state_of(model) == before


LINES = "", "decoder.2=hide:3", "decoder=mask:none", "decoder.1.1=off; decoder.3=temperature:0.5"


def test_threads_wait_for_each_other_where_they_share_a_model():
    """And where one has but a part of it, whose configuration is the same."""
    whole, inputs = in_part(model_of("llama")), inputs_of("llama")
    before = state_of(whole)
    models = [whole, whole.model, whole, whole.model]

    def of(i):
        return record(models[i], inputs=inputs, changes=LINES[i]).attention["decoder"]

    alone = [of(i) for i in range(4)]
    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(of, i % 4) for i in range(24)]
    assert all(np.array_equal(each.result(), alone[i % 4]) for i, each in enumerate(found))
    assert state_of(whole) == before
