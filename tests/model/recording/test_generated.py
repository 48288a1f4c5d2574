"""The steps of generate(), put together."""

import numpy as np
import pytest
import torch

from headlight.model import record
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
