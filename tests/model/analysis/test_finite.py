"""Where NaN and infinite values first appear: there, where a weight was spoilt."""

import pytest

from headlight.model.analysis.finite import begins, parameters_not_finite
from headlight.model.probing.capture import view
from headlight.model.probing.long_trace import long_trace
from tests.model.common import encoding, random_ids, random_model, run_of, traced

LAYER = "encoder.layers.1"
SPOILT = {  # in a trace, and in a long one, which has fewer parts
    "src_embedding.token.weight": ("the token embeddings of the source",) * 2,
    f"{LAYER}.self_attn.query.bias": (
        "the queries of encoder self-attention, layer 2", "the output of encoder layer 2",
    ),
    f"{LAYER}.feed_forward.linear2.bias": (
        "the feed-forward of encoder layer 2", "the output of encoder layer 2",
    ),
    f"{LAYER}.norm2.bias": ("the output of encoder layer 2",) * 2,
    "decoder.layers.2.cross_attn.value.bias": (
        "the values of cross-attention, layer 3", "the output of decoder layer 3",
    ),
    "decoder.layers.2.norm3.weight": ("the output of decoder layer 3",) * 2,
    "": ("", ""),
}  # fmt: skip


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", SPOILT)
def test_it_begins_behind_the_weight_that_was_spoilt(name, value):
    model, pair = random_model(), [encoding(random_ids(length)) for length in (5, 4)]
    if name:
        model.get_parameter(name).fill_(value)
    assert parameters_not_finite(model) == [name] * bool(name)
    both = traced(model, *pair), long_trace(view(model), run_of(model, *pair))
    assert tuple(map(begins, both)) == SPOILT[name]
