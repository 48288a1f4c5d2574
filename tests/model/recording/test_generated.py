"""The steps of generate(), put together."""

import numpy as np
import pytest
import torch
import transformers as tf

from headlight.model import record
from headlight.model.recording.weights import CannotRecord
from tests.model.recording.models import TWO_TEXTS, eager, inputs_of, model_of, named


@pytest.mark.parametrize(
    "name", named(["gpt2", "mistral", "gemma2", "bart", "t5"], {"gemma2", "bart"})
)
@pytest.mark.parametrize("how", [{}, {"use_cache": False}, {"num_beams": 3},
                                 {"num_beams": 3, "num_return_sequences": 2}], ids=str)  # fmt: skip
def test_generate_step_by_step_is_one_pass(name, how):
    model, inputs = eager(model_of(name)), inputs_of(name)
    inputs.pop("decoder_input_ids", None)
    with torch.no_grad():
        how = how | dict(output_attentions=True, return_dict_in_generate=True)
        output = model.generate(**inputs, max_new_tokens=8, do_sample=False, pad_token_id=0, **how)
    for row in range(how.get("num_return_sequences", 1)):
        written = output.sequences[row : row + 1]
        own = {"decoder_input_ids" if name in TWO_TEXTS else "input_ids": written}
        full = inputs | own if name in TWO_TEXTS else own
        expected = record(model, inputs=full).attention
        for kind, weights in record(output, row=row).attention.items():
            rows, keys = weights.shape[-2:]
            assert np.abs(weights - expected[kind][:, :, :rows, :keys]).max() < 1e-5


@pytest.mark.parametrize("kind", [tf.DynamicCache, tf.StaticCache], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", named(["llama", "gpt2", "mistral", "gemma2"], {"gemma2"}))
def test_generate_that_goes_on_from_a_cache_has_its_rows_in_their_places(name, kind):
    """Two layers of Gemma 2 keep a window alone."""
    model, ids, read = eager(model_of(name)), inputs_of(name)["input_ids"], 6
    cache = kind(config=model.config, **({} if kind is tf.DynamicCache else {"max_cache_len": 30}))
    how = dict(output_attentions=True, return_dict_in_generate=True, pad_token_id=0,
               do_sample=False)  # fmt: skip
    with torch.no_grad():
        model(input_ids=ids[:, :read], past_key_values=cache, use_cache=True)
        output = model.generate(ids, past_key_values=cache, max_new_tokens=4, **how)
    recorded = record(output)
    found = recorded.attention["decoder"]
    expected = record(model, inputs={"input_ids": output.sequences[:, :-1]}).attention["decoder"]
    assert np.abs(found[:, :, read:] - expected[:, :, read:]).max() < 1e-5
    assert not found[:, :, :read].any() and recorded.notes[0].startswith("The first 6 tokens")


def test_a_step_that_reads_a_token_of_its_own_is_refused():
    """As XLM's, which ends each with a mask: tokens would stand at wrong rows."""
    steps = [torch.eye(n)[None, None] for n in (4, 5, 6)]
    output = {"sequences": torch.zeros(1, 6), "attentions": [(step,) for step in steps]}
    with pytest.raises(CannotRecord, match="not in its sequences"):
        record(output)
    assert record(output | {"sequences": torch.zeros(1, 7)}).attention["decoder"].shape[-1] == 6
