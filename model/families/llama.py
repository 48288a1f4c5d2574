"""Llama (Touvron et al. 2023) and those built like it: SmolLM2, Mistral, Qwen2, Qwen3. A pre-norm
decoder alone with RMSNorm, rotary positions, SwiGLU and, in most, groups of heads that share keys
and values."""

from dataclasses import dataclass, replace

from torch import nn

from headlight.model.families.gpt2 import UnscaledEmbedding
from headlight.model.families.parts import (
    GatedFeedForward,
    GroupedQueryAttention,
    NoPositions,
    NormedProjection,
    RMSNorm,
)
from headlight.model.families.rotary import EACH_PAIR, Rotary, RotaryScores
from headlight.model.sites import Side
from headlight.model.variants import DecoderOnly, DecoderOnlyConfig, PreNormEncoderLayer


@dataclass(frozen=True)
class LlamaConfig(DecoderOnlyConfig):
    """Sizes of a Llama.

    n_key_heads   heads of keys and values; 0: as many as of queries
    head_size     width of a head; 0: d_model / n_heads
    norm_eps      of its RMSNorms; activation: of its feed-forwards' gates
    rotary_*      see rotary.Rotary; settings as pairs of name and value
    query_bias    of queries, keys and values (Qwen2); output_bias: of the output projection
    forward_bias  of the feed-forwards
    normed_heads  whether queries and keys are normed (Qwen3)
    tied          whether embeddings and output share their matrix
    """

    n_key_heads: int = 0
    head_size: int = 0
    norm_eps: float = 1e-6
    activation: str = "silu"
    rotary_base: float = 10000.0
    rotary_rule: str = "default"
    rotary_settings: tuple[tuple[str, float | tuple[float, ...]], ...] = ()
    rotary_length: int = 0
    query_bias: bool = False
    output_bias: bool = False
    forward_bias: bool = False
    normed_heads: bool = False
    tied: bool = False
    special_tokens: tuple[str, ...] = ("<pad>", "<s>", "</s>")

    def check_heads(self) -> None:
        if not self.head_size:
            super().check_heads()
        if self.d_head % 2:
            raise ValueError(
                f"heads of {self.d_head} numbers cannot be rotated in pairs: d_head is odd"
            )
        for name, value in self.rotary_settings:
            if name in EACH_PAIR and len(value) != self.d_head // 2:
                raise ValueError(
                    f"{name} has {len(value)} numbers, but heads of {self.d_head} have "
                    f"{self.d_head // 2} pairs"
                )
        if self.n_heads % (self.n_key_heads or self.n_heads):
            raise ValueError(
                f"n_heads ({self.n_heads}) must be a multiple of n_key_heads ({self.n_key_heads})"
            )

    @property
    def d_head(self) -> int:
        return self.head_size or super().d_head

    @property
    def rotary(self) -> Rotary:
        # JSON has lists for tuples.
        settings = tuple(
            (name, tuple(value) if isinstance(value, list) else value)
            for name, value in self.rotary_settings
        )
        length = self.rotary_length or self.max_length
        return Rotary(self.rotary_base, self.rotary_rule, settings, length)


class Llama(DecoderOnly):
    """A decoder alone that adds no positions to its embeddings: queries and keys turn instead."""

    def __init__(self, config: LlamaConfig):
        super().__init__(replace(config, n_decoder_layers=0))
        self.config = config
        self.tgt_embedding = UnscaledEmbedding(config, NoPositions(config.d_model))
        self.decoder.layers = nn.ModuleList(
            LlamaLayer(config) for _ in range(config.n_decoder_layers)
        )
        self.decoder.norm = RMSNorm(config.d_model, config.norm_eps)
        if config.tied:
            self.generator.weight = self.tgt_embedding.token.weight
        else:
            self.generator = nn.Linear(config.d_model, config.vocab_size, bias=False)

    def sides(self) -> tuple[Side, ...]:
        return tuple(replace(side, table=False) for side in super().sides())


class LlamaLayer(PreNormEncoderLayer):
    """RMSNorm, self-attention under rotary positions, RMSNorm, SwiGLU (Touvron et al. 2023, section
    2.2)."""

    def __init__(self, config: LlamaConfig):
        nn.Module.__init__(self)
        d_model, d_head, n_heads = config.d_model, config.d_head, config.n_heads
        self.self_attn = GroupedQueryAttention(
            d_model,
            n_heads,
            config.n_key_heads or n_heads,
            d_head,
            RotaryScores(config.rotary),
            config.query_bias,
            config.output_bias,
        )
        if config.normed_heads:
            for name in ("query", "key"):
                projection = NormedProjection(
                    self.self_attn.get_submodule(name), d_head, config.norm_eps
                )
                self.self_attn.set_submodule(name, projection)
        self.norm1 = RMSNorm(d_model, config.norm_eps)
        self.feed_forward = GatedFeedForward(
            d_model, config.d_ff, config.activation, config.forward_bias
        )
        self.norm2 = RMSNorm(d_model, config.norm_eps)
        self.dropout = nn.Dropout(config.dropout)


def llama(config: LlamaConfig) -> Llama:
    """Llama, SmolLM2, Mistral, Qwen2 and Qwen3, by what their sizes say."""
    return Llama(config)
