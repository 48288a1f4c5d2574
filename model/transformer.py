"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), in the paper's order.

What one wants to look at is the output of a named submodule, so that a plain forward hook
sees it: the attention weights are the output of `softmax`, queries, keys and values the
outputs of `query`, `key` and `value`, the positional table the output of `position`.

Shapes in this package are words:

    batch     sentences, padded to one length with `pad_id`
    length    tokens of a sentence; src = source, tgt = target
    query     positions that ask (rows); for cross-attention, target positions
    key       positions that are looked at (columns); for cross-attention, source positions
    heads     attention heads of one layer
    d_model   width of the residual stream
    d_head    d_model / heads, the paper's d_k = d_v

A mask is boolean and broadcasts to (batch, heads, query, key). True = may attend.
`None` means that every query may attend to every key.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Config:
    """Sizes of one model. The defaults are the paper's base model (table 3)."""

    vocab_size: int
    d_model: int = 512
    n_heads: int = 8
    d_ff: int = 2048
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    dropout: float = 0.1
    max_length: int = 1024  # longest sentence in tokens, special tokens included
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2

    def __post_init__(self):
        for name in ("vocab_size", "d_model", "n_heads", "d_ff", "max_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.d_model % self.n_heads:
            raise ValueError(
                f"d_model ({self.d_model}) must be a multiple of n_heads ({self.n_heads})"
            )

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_heads


class MaskedSoftmax(nn.Module):
    """From scores to weights, the softmax of equation 1 under a mask.

    scores, weights: (batch, heads, query, key). Each row of weights sums to 1 over the keys
    it may attend to. A row that may attend to nothing is all zeros.
    """

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            return scores.softmax(dim=-1)
        empty = ~mask.any(dim=-1, keepdim=True)
        if not empty.any():
            return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
        # Only -inf everywhere makes softmax NaN: leave empty rows unmasked, then clear them.
        return scores.masked_fill(~(mask | empty), -math.inf).softmax(dim=-1) * ~empty


class MultiHeadAttention(nn.Module):
    """softmax(QKᵀ / √d_head) V in each head, side by side (sections 3.2.1 and 3.2.2).

    query: (batch, query, d_model); key, value: (batch, key, d_model).
    Returns (batch, query, d_model).
    """

    def __init__(self, d_model: int, n_heads: int, dropout: float = 0.0):
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.softmax = MaskedSoftmax()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(d_model, d_model)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, cache=None
    ) -> Tensor:
        q = self.split(self.query(query))
        k, v = cache(self, key, value) if cache else self.keys_values(key, value)
        scores = self.scale(q) @ k.transpose(-2, -1)  # (batch, heads, query, key)
        weights = self.softmax(scores, mask)
        heads = self.dropout(weights) @ v  # (batch, heads, query, d_head)
        return self.output(heads.transpose(1, 2).flatten(2))

    def keys_values(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Projected keys and values, each (batch, heads, key, d_head)."""
        return self.split(self.key(key)), self.split(self.value(value))

    def split(self, x: Tensor) -> Tensor:
        """(batch, length, d_model) → (batch, heads, length, d_head)"""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    @staticmethod
    def scale(q: Tensor) -> Tensor:
        """Queries divided by √d_head: the same scores as dividing after, and fewer numbers."""
        return q * q.shape[-1] ** -0.5


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2, the same at every position (section 3.3)."""

    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.linear1(x).relu())


class TokenEmbedding(nn.Embedding):
    """A learned vector per token, times √d_model (section 3.4). (batch, length) → + d_model"""

    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids) * math.sqrt(self.embedding_dim)


class PositionalEncoding(nn.Module):
    """Sines and cosines of wavelengths from 2π to 10000·2π (section 3.5).

    Returns the table alone, (position, d_model); whoever calls adds it.
    """

    def __init__(self, max_length: int, d_model: int, base: float = 10000.0):
        super().__init__()
        position = torch.arange(max_length, dtype=torch.float64)[:, None]
        even = torch.arange(0, d_model, 2, dtype=torch.float64)
        angle = position / base ** (even / d_model)
        table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d_model]
        self.register_buffer("table", table.to(torch.get_default_dtype()), persistent=False)

    def forward(self, length: int, start: int = 0) -> Tensor:
        return self.table[start : start + length]


class Embedding(nn.Module):
    """What enters layer 1: token embedding + positional encoding (sections 3.4, 3.5, 5.4)."""

    def __init__(self, config: Config):
        super().__init__()
        self.token = TokenEmbedding(config.vocab_size, config.d_model)
        self.position = PositionalEncoding(config.max_length, config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        return self.dropout(self.token(ids) + self.position(ids.shape[1], start))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward; after each: add, then norm (section 3.1)."""

    def __init__(self, config: Config):
        super().__init__()
        self.self_attn = MultiHeadAttention(config.d_model, config.n_heads, config.dropout)
        self.norm1 = nn.LayerNorm(config.d_model)
        self.feed_forward = FeedForward(config.d_model, config.d_ff)
        self.norm2 = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norm1(x + self.dropout(self.self_attn(x, x, x, mask)))
        return self.norm2(x + self.dropout(self.feed_forward(x)))


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the encoder's output, feed-forward (section 3.1)."""

    def __init__(self, config: Config):
        super().__init__()
        self.self_attn = MultiHeadAttention(config.d_model, config.n_heads, config.dropout)
        self.norm1 = nn.LayerNorm(config.d_model)
        self.cross_attn = MultiHeadAttention(config.d_model, config.n_heads, config.dropout)
        self.norm2 = nn.LayerNorm(config.d_model)
        self.feed_forward = FeedForward(config.d_model, config.d_ff)
        self.norm3 = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache=(None, None),
    ) -> Tensor:
        own, other = cache
        x = self.norm1(x + self.dropout(self.self_attn(x, x, x, mask, own)))
        x = self.norm2(x + self.dropout(self.cross_attn(x, memory, memory, memory_mask, other)))
        return self.norm3(x + self.dropout(self.feed_forward(x)))


class Encoder(nn.Module):
    """A stack of encoder layers. `norm` is empty here: post-norm layers end in their own."""

    def __init__(self, config: Config):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_encoder_layers))
        self.norm = nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class Decoder(nn.Module):
    """A stack of decoder layers. `norm` is empty here: post-norm layers end in their own."""

    def __init__(self, config: Config):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.n_decoder_layers))
        self.norm = nn.Identity()

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache=None,
    ) -> Tensor:
        caches = cache or [(None, None)] * len(self.layers)
        for layer, held in zip(self.layers, caches, strict=True):
            x = layer(x, memory, mask, memory_mask, held)
        return self.norm(x)


class Transformer(nn.Module):
    """Encoder and decoder with one matrix for both embeddings and the output (section 3.4).

    src, tgt: token ids, (batch, length). Logits: (batch, length, vocab_size); the row of
    target position i scores the token at i + 1.
    """

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.src_embedding = Embedding(config)
        self.tgt_embedding = Embedding(config)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.generator = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.tgt_embedding.token.weight = self.src_embedding.token.weight
        self.generator.weight = self.src_embedding.token.weight
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier uniform matrices; embeddings of variance 1 once multiplied by √d_model."""
        for module in self.modules():
            if isinstance(module, nn.Linear) and module is not self.generator:
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)

    def encode(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """Source ids → memory, (batch, src, d_model)."""
        return self.encoder(self.src_embedding(src), src_mask)

    def decode(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache=None,
        start: int = 0,
    ) -> Tensor:
        """Target ids and memory → (batch, tgt, d_model), what the generator turns into logits.

        `cache` holds earlier keys and values (see decoding.py); then tgt is only what is new
        and `start` the position of its first token.
        """
        x = self.tgt_embedding(tgt, start)
        return self.decoder(x, memory, tgt_mask, memory_mask, cache)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        memory = self.encode(src, src_mask)
        return self.generator(self.decode(tgt, memory, tgt_mask, memory_mask))
