"""Known systems by name: the paper's model with the parts put in that they do differently."""

from torch import nn

from model.transformer import Config, Transformer
from model.variants import (
    Classifier,
    ClassifierConfig,
    LearnedPositions,
    PreNormDecoderLayer,
    PreNormEncoderLayer,
    WideAttention,
)


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


def bloem(config: ClassifierConfig) -> Classifier:
    """Bloem 2019, "Transformers from scratch": an encoder that classifies, post-norm, with
    learned positions and heads as wide as the model."""
    model = Classifier(config)
    embedding = model.src_embedding
    embedding.token = nn.Embedding(config.vocab_size, config.d_model)
    embedding.position = LearnedPositions(config.max_length, config.d_model)
    for table in (embedding.token, embedding.position):
        nn.init.normal_(table.weight, std=config.d_model**-0.5)
    # Whole tokens at a time: a verdict must not hang on one word that training happened to hold.
    embedding.dropout = nn.Dropout1d(config.dropout)
    for layer in model.encoder.layers:
        layer.self_attn = WideAttention(config.d_model, config.n_heads, config.dropout)
    return model


PRESETS = {"paper": paper, "pre_norm": pre_norm, "bloem": bloem}


def build(name: str, **sizes) -> Transformer | Classifier:
    """A model of the preset `name` with random weights; `sizes` are the fields of its Config."""
    if name not in PRESETS:
        raise ValueError(f"no preset {name!r}; there are {', '.join(PRESETS)}")
    config = ClassifierConfig if name == "bloem" else Config
    return PRESETS[name](config(**sizes))
