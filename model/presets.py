"""Known systems by name: the paper's model with the parts put in that they do differently."""

from torch import nn

from model.transformer import Config, Transformer
from model.variants import PreNormDecoderLayer, PreNormEncoderLayer


def paper(config: Config) -> Transformer:
    """Vaswani et al. 2017: post-norm, sinusoids, one shared embedding matrix."""
    return Transformer(config)


def pre_norm(config: Config) -> Transformer:
    """The paper's model with pre-norm layers and a final norm on each stack."""
    model = Transformer(config)
    for stack, layer in (
        (model.encoder, PreNormEncoderLayer),
        (model.decoder, PreNormDecoderLayer),
    ):
        stack.layers = nn.ModuleList(layer(config) for _ in stack.layers)
        stack.norm = nn.LayerNorm(config.d_model)
    model.reset_parameters()
    return model


PRESETS = {"paper": paper, "pre_norm": pre_norm}


def build(name: str, **sizes) -> Transformer:
    """A model of the preset `name` with random weights; `sizes` are the fields of Config."""
    if name not in PRESETS:
        raise ValueError(f"no preset {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name](Config(**sizes))
