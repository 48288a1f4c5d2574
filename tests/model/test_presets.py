import pytest
from torch import nn

from headlight.model.presets import build
from headlight.model.transformer import Config, DecoderLayer, EncoderLayer
from tests.model.common import PRESETS, SIZES


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_keeps_to_its_sizes(preset):
    model = build(preset, **SIZES, n_encoder_layers=1, n_decoder_layers=4)
    assert model.config == Config(**SIZES, n_encoder_layers=1, n_decoder_layers=4)
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (1, 4)


def test_the_paper_s_model_has_no_swapped_part():
    model = build("paper", **SIZES)
    assert {type(layer) for layer in model.encoder.layers} == {EncoderLayer}
    assert {type(layer) for layer in model.decoder.layers} == {DecoderLayer}


def test_pre_norm_swaps_the_order_and_adds_a_final_norm():
    paper, pre_norm = (build(preset, **SIZES) for preset in PRESETS)
    added = pre_norm.state_dict().keys() - paper.state_dict().keys()
    assert added == {
        f"{stack}.norm.{p}" for stack in ("encoder", "decoder") for p in ("weight", "bias")
    }
    assert isinstance(pre_norm.encoder.norm, nn.LayerNorm)


def test_an_unknown_preset_is_refused_with_what_there_is():
    with pytest.raises(ValueError, match=r"no preset 'bird'; choose from paper, pre_norm"):
        build("bird", vocab_size=10)
