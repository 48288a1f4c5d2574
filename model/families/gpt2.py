"""GPT-2 (Radford et al. 2019): a pre-norm decoder alone with learned positions and GELU."""

from dataclasses import dataclass

from torch import nn

from headlight.model.families.parts import ActivatedFeedForward
from headlight.model.transformer import Embedding
from headlight.model.variants import (
    DecoderOnly,
    DecoderOnlyConfig,
    LearnedPositions,
    PreNormEncoderLayer,
)


@dataclass(frozen=True)
class GPT2Config(DecoderOnlyConfig):
    """Sizes of a GPT-2. `norm_eps`: of its LayerNorms; `activation`: of its feed-forwards; `tied`:
    whether embeddings and output share their matrix."""

    norm_eps: float = 1e-5
    activation: str = "gelu_tanh"
    tied: bool = True
    special_tokens: tuple[str, ...] = ("<pad>", "<|endoftext|>", "<|endoftext|>")


class UnscaledEmbedding(Embedding):
    """Token embedding as it is + positions, whatever they are."""

    def __init__(self, config: DecoderOnlyConfig, positions: nn.Module):
        nn.Module.__init__(self)  # no table of sinusoids: it may be a large one
        self.token = nn.Embedding(config.vocab_size, config.d_model)
        self.position = positions
        self.dropout = nn.Dropout(config.dropout)


def gpt2(config: GPT2Config) -> DecoderOnly:
    """GPT-2: norm before each sublayer and behind the last, GELU by tanh, learned positions; one
    matrix for embeddings and output (Radford et al. 2019, section 2.3)."""
    model = DecoderOnly(config)
    positions = LearnedPositions(config.max_length, config.d_model)
    model.tgt_embedding = UnscaledEmbedding(config, positions)
    model.generator = nn.Linear(config.d_model, config.vocab_size, bias=False)
    if config.tied:
        model.generator.weight = model.tgt_embedding.token.weight
    model.decoder.layers = nn.ModuleList(PreNormEncoderLayer(config) for _ in model.decoder.layers)
    for layer in model.decoder.layers:
        layer.feed_forward = ActivatedFeedForward(config.d_model, config.d_ff, config.activation)
        layer.norm1, layer.norm2 = (nn.LayerNorm(config.d_model, config.norm_eps) for _ in range(2))
    model.decoder.norm = nn.LayerNorm(config.d_model, config.norm_eps)
    return model
