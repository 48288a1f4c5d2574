"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), in the paper's order:
attention (section 3.2), feed-forward (3.3), embeddings and softmax (3.4), positions (3.5), then
the layers and stacks that they make (3.1), and the model.

Everything worth seeing is the output of a named submodule, so that a plain forward hook can record
it: the scores are the output of `scores`, the attention weights of `softmax`, queries, keys and
values of `query`, `key` and `value`, the positional table of `position`. A model says which texts
it reads (`sides`) and where attention happens (`sites`), so code that inspects a model need not
know which one it is. Its forward takes the ids of each side, then a mask for each kind of
attention, in their order.

Shapes in this package are words:

    batch     sentences, padded to one length with `pad_id`
    length    tokens of a sentence; src = source, tgt = target
    position  rows of a positional table, from 0
    query     positions that attend (rows); for cross-attention, target positions
    key       positions that are attended to (columns); for cross-attention, source positions
    heads     attention heads of one layer
    d_model   width of the residual stream
    d_head    width of a head's query and key: d_model / heads, the paper's d_k = d_v
    memory    what the encoder gives the decoder, (batch, src, d_model)

A mask is boolean and broadcasts to (batch, heads, query, key). True = may attend.
`None` means that every query may attend to every key.
"""

import math
from dataclasses import dataclass, fields
from typing import ClassVar

import torch
from torch import Tensor, nn

from headlight.model.sites import Layer, LayerList, ProbedModel, Side, Site, sites_of


@dataclass(frozen=True)
class Config:
    """Sizes of one model. The defaults are the paper's base model (table 3).

    >>> Config(vocab_size=37000).d_head
    64
    """

    vocab_size: int
    d_model: int = 512
    n_heads: int = 8
    d_ff: int = 2048
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    dropout: float = 0.1
    max_length: int = 1024  # longest sentence in tokens, special tokens included
    pad_id: int = 0  # these three: -1 where the vocabulary has no such token
    bos_id: int = 1
    eos_id: int = 2
    special_tokens: ClassVar = ("<pad>", "<s>", "</s>")  # what these three are called

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is not int:
                continue
            if type(value) is not int:
                raise ValueError(f"{field.name} must be a whole number, not {value!r}")
            if value < self._least(field.name):
                raise ValueError(
                    f"{field.name} must be at least {self._least(field.name)}, not {value}"
                )
        if not 0 <= self.dropout <= 1:  # nor NaN
            raise ValueError(f"dropout must be a number from 0 to 1, not {self.dropout!r}")
        self.check_heads()

    def _least(self, name: str) -> int:
        if name in ("vocab_size", "d_model", "n_heads", "d_ff", "max_length"):
            return 1
        return -1 if name.endswith("_id") else 0

    def check_heads(self) -> None:
        if self.d_model % self.n_heads:
            raise ValueError(
                f"d_model ({self.d_model}) must be a multiple of n_heads ({self.n_heads})"
            )

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_heads

    def special_ids(self, side: str) -> tuple[int, int, int]:
        """pad_id, bos_id and eos_id in the vocabulary of a side, "src" or "tgt"."""
        return self.pad_id, self.bos_id, self.eos_id


# Attention (section 3.2)


class Scores(nn.Module):
    """QKᵀ / √d_head, the scores of equation 1.

    q: (batch, heads, query, d_head); k: (batch, heads, key, d_head); scores: (batch, heads,
    query, key), as the softmax gets them.
    """

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        # Queries divided before: the same scores as dividing after, and fewer numbers.
        return q * q.shape[-1] ** -0.5 @ k.transpose(-2, -1)


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
            return self.under(mask, scores).softmax(dim=-1)
        # Only -inf everywhere makes softmax NaN: leave empty rows unmasked, then clear them.
        return self.under(mask | empty, scores).softmax(dim=-1) * ~empty

    def under(self, mask: Tensor, scores: Tensor) -> Tensor:
        """Scores with -inf where the mask is False. The mask is small; adding it as numbers is
        faster than filling the scores."""
        return scores + torch.where(mask, scores.new_zeros(()), -math.inf)


class MultiHeadAttention(nn.Module):
    """softmax(QKᵀ / √d_head) V in each head, side by side (sections 3.2.1 and 3.2.2).

    query: (batch, query, d_model); key, value: (batch, key, d_model).
    Returns (batch, query, d_model).
    """

    def __init__(self, d_model: int, n_heads: int, dropout: float = 0.0):
        super().__init__()
        self.n_heads = self.n_key_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.scores = Scores()
        self.softmax = MaskedSoftmax()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(d_model, d_model)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        q = self.split(self.query(query))
        k, v = self.keys_values(key, value)
        weights = self.softmax(self.scores(q, k), mask)  # (batch, heads, query, key)
        heads = self.dropout(weights) @ v  # (batch, heads, query, d_head)
        return self.output(self.merge(heads))

    def keys_values(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Projected keys and values, each (batch, heads, key, d_head)."""
        return self.split(self.key(key)), self.split(self.value(value))

    def split(self, x: Tensor) -> Tensor:
        """(batch, length, d_model) → (batch, heads, length, d_head)"""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def merge(self, heads: Tensor) -> Tensor:
        """(batch, heads, length, d_head) → (batch, length, heads · d_head)"""
        return heads.transpose(1, 2).flatten(2)


# Feed-forward (section 3.3)


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2, the same at every position (section 3.3)."""

    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.linear1(x).relu())


# Embeddings and softmax (section 3.4); the matrix before the softmax is Transformer.generator


class TokenEmbedding(nn.Embedding):
    """A learned vector per token, times √d_model (section 3.4). (batch, length) → + d_model"""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) * math.sqrt(self.embedding_dim)


# Positions (section 3.5)


class PositionalEncoding(nn.Module):
    """Sines and cosines of wavelengths from 2π to 10000·2π (section 3.5).

    Returns the table alone, (position, d_model); whoever calls adds it.
    """

    table: Tensor

    def __init__(self, max_length: int, d_model: int, base: float = 10000.0):
        super().__init__()
        position = torch.arange(max_length, dtype=torch.float64)[:, None]
        even = torch.arange(0, d_model, 2, dtype=torch.float64)
        angle = position / base ** (even / d_model)
        table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d_model]
        self.register_buffer("table", table.to(torch.get_default_dtype()), persistent=False)

    def forward(self, length: int) -> Tensor:
        return self.table[:length]


class Embedding(nn.Module):
    """What enters layer 1: token embedding + positional encoding (sections 3.4, 3.5, 5.4)."""

    def __init__(self, config: Config):
        super().__init__()
        self.token: nn.Embedding = TokenEmbedding(config.vocab_size, config.d_model)
        self.position: nn.Module = PositionalEncoding(config.max_length, config.d_model)
        self.dropout: nn.Module = nn.Dropout(config.dropout)

    def forward(self, ids: Tensor) -> Tensor:
        return self.dropout(self.token(ids) + self.position(ids.shape[1]))


# Layers and stacks (section 3.1)


class EncoderLayer(Layer):
    """Self-attention, then feed-forward; after each: add, then norm (section 3.1)."""

    sublayers: ClassVar = {"self_attn": "norm1", "feed_forward": "norm2"}

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


class DecoderLayer(Layer):
    """Causal self-attention, attention to the encoder's output, feed-forward (section 3.1)."""

    sublayers: ClassVar = {"self_attn": "norm1", "cross_attn": "norm2", "feed_forward": "norm3"}

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
    ) -> Tensor:
        x = self.norm1(x + self.dropout(self.self_attn(x, x, x, mask)))
        x = self.norm2(x + self.dropout(self.cross_attn(x, memory, memory, memory_mask)))
        return self.norm3(x + self.dropout(self.feed_forward(x)))


class Encoder(nn.Module):
    """A stack of encoder layers. `norm` is empty here: post-norm layers end in their own."""

    def __init__(self, config: Config):
        super().__init__()
        layers = (EncoderLayer(config) for _ in range(config.n_encoder_layers))
        self.layers: LayerList[EncoderLayer] = LayerList(layers)
        self.norm: nn.Module = nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class Decoder(nn.Module):
    """A stack of decoder layers. `norm` is empty here: post-norm layers end in their own."""

    def __init__(self, config: Config):
        super().__init__()
        layers = (DecoderLayer(config) for _ in range(config.n_decoder_layers))
        self.layers: LayerList[DecoderLayer] = LayerList(layers)
        self.norm: nn.Module = nn.Identity()

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return self.norm(x)


# The model (figure 1)


class Transformer(ProbedModel):
    """Encoder and decoder with one matrix for both embeddings and the output (section 3.4).

    src, tgt: token ids, (batch, length). Logits: (batch, length, vocab_size); the row of
    target position i scores the token at i + 1.

    >>> Transformer(Config(vocab_size=9, d_model=8, n_heads=2)).sites()[0].name
    'encoder.layers.0.self_attn'
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
        reset_parameters(self)

    def sides(self) -> tuple[Side, ...]:
        """The texts that the model reads: source, then target."""
        encoder, decoder = (
            tuple(f"{name}.layers.{i}" for i in range(len(stack.layers)))
            for name, stack in (("encoder", self.encoder), ("decoder", self.decoder))
        )
        return (
            Side(
                "src", "source", "encoder", "src_embedding", encoder, "encoder.norm",
                ends=self.config.special_ids("src")[2] >= 0,
            ),
            Side(
                "tgt", "target", "decoder", "tgt_embedding", decoder, "decoder.norm",
                begins=self.config.bos_id >= 0, writes=True, predicts="next token",
            ),
        )  # fmt: skip

    def sites(self) -> tuple[Site, ...]:
        """All attention: the encoder's, the decoder's self-attention, and its cross-attention."""
        encoder, decoder = self.encoder.layers, self.decoder.layers
        return (
            *sites_of(
                "encoder", "encoder self-attention", "encoder", encoder, ("src", "src"),
                "self_attn", ("src_padding",),
            ),
            *sites_of(
                "decoder", "decoder self-attention", "decoder", decoder, ("tgt", "tgt"),
                "self_attn", ("causal", "tgt_padding"),
            ),
            *sites_of(
                "cross", "cross-attention", "decoder", decoder, ("tgt", "src"),
                "cross_attn", ("memory_padding",),
            ),
        )  # fmt: skip

    def logits(self, x: Tensor, ids: Tensor | None = None) -> Tensor:
        """Logits from the final hidden states, (batch, length, d_model), and the ids of the
        predicted side."""
        return self.generator(x)

    def encode(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """Source ids → memory, (batch, src, d_model)."""
        return self.encoder(self.src_embedding(src), src_mask)

    def decode(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Target ids and memory → final hidden states, (batch, tgt, d_model)."""
        return self.decoder(self.tgt_embedding(tgt), memory, tgt_mask, memory_mask)

    def hidden(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """The final hidden states of the target, (batch, tgt, d_model)."""
        return self.decode(tgt, self.encode(src, src_mask), tgt_mask, memory_mask)

    def forward(self, src: Tensor, tgt: Tensor, *masks: Tensor | None) -> Tensor:
        return self.logits(self.hidden(src, tgt, *masks), tgt)


def reset_parameters(model: ProbedModel) -> None:
    """Xavier uniform matrices; embeddings of variance 1 once multiplied by √d_model."""
    for module in model.modules():
        if isinstance(module, nn.Linear) and module is not model.generator:
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
