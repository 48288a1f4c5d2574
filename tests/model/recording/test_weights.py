"""Weights of models that run in their own code, against what they say of themselves."""

import numpy as np
import pytest
import torch
import transformers as tf
from torch import nn

from headlight.model import record
from headlight.model.probing.changes import CannotChange
from headlight.model.probing.trace import TooLong
from headlight.model.recording.checkpoint import load_recorded
from headlight.model.recording.weights import CannotRecord, unwrapped
from tests.model.recording.models import (
    ALL,
    IDS,
    LENGTH,
    SHORT,
    E,
    L,
    T,
    eager,
    inputs_of,
    model_of,
    named,
)
from tests.model.recording.test_architectures import outcome, theirs


@pytest.mark.parametrize("name", named(ALL, SHORT))
def test_weights_are_those_of_output_attentions(name):
    model, inputs = model_of(name), inputs_of(name)
    if "attention_mask" in inputs:
        inputs["attention_mask"][0, -3:] = 0
    assert outcome(record(model, inputs=inputs), theirs(model, inputs)) == "equal"


def test_what_has_no_attention_says_so():
    model = tf.MambaForCausalLM(tf.MambaConfig(vocab_size=97, hidden_size=32, num_hidden_layers=2))
    with pytest.raises(CannotRecord, match=r"MambaForCausalLM has no attention weights"):
        record(model, text=[3, 4, 5])


def test_a_path_that_is_chosen_by_the_name_eager_is_taken():
    """GPT-2 computes its scores in another order there, which does not ask the table."""
    plain, model = model_of("gpt2"), model_of("gpt2")
    for module in model.modules():
        if hasattr(module, "reorder_and_upcast_attn"):
            module.reorder_and_upcast_attn = True
    inputs = inputs_of("gpt2")
    with torch.no_grad():
        output = eager(model.half())(**inputs, output_attentions=True)
    mine = record(model, inputs=inputs).attention["decoder"]
    assert np.array_equal(mine, np.stack([w[0].float().numpy() for w in output.attentions]))
    other = record(plain.half(), inputs=inputs).attention["decoder"]
    assert not np.array_equal(mine, other)


def longformer():
    config = tf.LongformerConfig(**E | IDS | dict(attention_window=LENGTH - 1))
    torch.manual_seed(0)
    return tf.LongformerModel(config).eval()


def test_columns_that_are_no_tokens_are_refused_though_they_are_as_many():
    """In a window of 8 there are 9 places, for 9 tokens."""
    model, ids = longformer(), torch.arange(3, 3 + LENGTH)[None]
    with pytest.raises(CannotRecord, match="not the tokens of the text"):
        record(model, inputs={"input_ids": ids})
    with torch.no_grad():
        output = eager(model)(ids, output_attentions=True)
    assert output.attentions[0].shape[-2:] == (LENGTH, LENGTH)
    for weights in (output, output.attentions, output.attentions[0]):
        with pytest.raises(CannotRecord, match="not the tokens of the text"):
            record(weights)
    reversing = np.eye(3)[::-1]  # 0 at the same places, but not above 0 at all others
    assert record(reversing).attention


def test_an_encoder_that_cannot_be_read_is_said():
    """It attends in blocks, and does not ask the table as its decoder does."""
    model = tf.LongT5ForConditionalGeneration(tf.LongT5Config(**T)).eval()
    recorded = record(model, text=[5, 6, 7], target=[0, 8])
    assert [*recorded.attention] == ["decoder", "cross"]
    assert recorded.notes[0].startswith("LongT5LayerLocalSelfAttention of LongT5For")
    attends = {"decoder_attentions": [torch.eye(2)], "cross_attentions": [torch.ones(2, 3) / 3]}
    assert "no weights of the encoder" in record(attends).notes[0]


def test_layers_have_the_models_own_numbers(tmp_path):
    kinds = ["conv", "conv", "full_attention", "conv"]
    model = tf.Lfm2ForCausalLM(tf.Lfm2Config(**L | dict(num_hidden_layers=4, layer_types=kinds)))
    recorded = record(model, text=[5, 6, 7], changes="decoder.3.1=off")
    assert [site.layer for site in recorded.sites] == [2]
    recorded.save(tmp_path / "one.safetensors")
    assert load_recorded(tmp_path / "one.safetensors").model.sites() == recorded.sites
    with pytest.raises(CannotChange, match="layer"):
        record(model, text=[5, 6, 7], changes="decoder.1.1=off")
    some = {f"blocks.{i}.attn.hook_pattern": torch.eye(3)[None] for i in (4, 1)}
    assert [site.layer for site in record(some).sites] == [1, 4]
    with pytest.raises(CannotRecord, match="layer 5, head 1, row 1"):
        record(some | {"blocks.4.attn.hook_pattern": -torch.eye(3)[None]})
    shared = record(model_of("albert"), text=[5, 6, 7])  # one layer, called three times
    assert [site.layer for site in shared.sites] == [0, 1, 2]


def test_wrappers_do_not_make_a_kind_of_their_own():
    name = "model.layers.{}{}.self_attn{}"
    wrapped = [name.format(0, "._orig_mod", ""), name.format(1, "", ".base_layer"),
               f"module.{name.format(2, '', '.modules_to_save.default')}"]  # fmt: skip
    assert [*map(unwrapped, wrapped)] == [name.format(i, "", "") for i in range(3)]
    assert unwrapped("my_module.attn") == "my_module.attn"


IDS_OF_THREE = {"input_ids": torch.arange(18).view(3, 6)}


def model_of_ids(swaps):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.attention = nn.Embedding(18, 16), nn.MultiheadAttention(16, 4)

        def forward(self, input_ids):
            x = self.embedding(input_ids)
            return self.attention(*[x.transpose(0, 1) if swaps else x] * 3)

    return Model()


def test_a_batch_whose_axes_were_swapped_is_said():
    """Three texts of six tokens, of which the first axis is read as the length."""
    for first in (False, True):
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=first)
        model = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        recorded = record(model, inputs=(torch.randn(3, 6, 16),))
        assert recorded.attention["encoder"].shape[-1] == (6 if first else 3)
        assert first == (not recorded.notes)
    assert "batch_first=True" in record(model_of_ids(False), inputs=IDS_OF_THREE).notes[0]
    recorded = record(model_of_ids(True), inputs=IDS_OF_THREE)  # it swaps them itself
    assert not recorded.notes and recorded.texts["src"].ids == (0, 1, 2, 3, 4, 5)


def test_positions_that_padding_takes_are_none_of_the_texts():
    """Of RoBERTa's 70 the first is padding's."""
    model = model_of("roberta")
    assert record(model, text=[5] * 69).attention["encoder"].shape[-1] == 69
    with pytest.raises(TooLong, match="at most 69"):
        record(model, text=[5] * 70)
    with pytest.raises(CannotRecord, match="id, or its position, is beyond"):
        record(model, text=[5, 97])


def test_windows_of_an_input_are_said():
    sizes = dict(image_size=16, patch_size=2, embed_dim=8, depths=[1], num_heads=[2], window_size=4)
    for kind, config in ((tf.SwinModel, tf.SwinConfig), (tf.Swinv2Model, tf.Swinv2Config)):
        model = kind(config(**sizes)).eval()
        (note,) = record(model, inputs={"pixel_values": torch.randn(1, 3, 16, 16)}).notes
        assert "within 4 parts of the input" in note and note.endswith("This is part 1.")
