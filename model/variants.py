"""Parts of other systems that replace the paper's; presets.py puts them in."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from headlight.model.sites import ProbedModel, Side, Site, sites_of
from headlight.model.transformer import (
    Config,
    DecoderLayer,
    Embedding,
    Encoder,
    EncoderLayer,
    FeedForward,
    MaskedSoftmax,
    MultiHeadAttention,
    PositionalEncoding,
    Scores,
    Transformer,
    reset_parameters,
)


@dataclass(frozen=True)
class TwoVocabularies(Config):
    """Sizes of a model whose target has a vocabulary of its own; 0: the source's. pad_id, bos_id
    and eos_id are the target's; src_*: what the source has in place of them, None: the same."""

    tgt_vocab_size: int = 0
    src_pad_id: int | None = None
    src_eos_id: int | None = None

    @property
    def tgt_vocab(self) -> int:
        return self.tgt_vocab_size or self.vocab_size

    def special_ids(self, side: str) -> tuple[int, int, int]:
        pad, bos, eos = super().special_ids(side)
        if side == "tgt":
            return pad, bos, eos
        return (
            pad if self.src_pad_id is None else self.src_pad_id,
            bos,
            eos if self.src_eos_id is None else self.src_eos_id,
        )


def special_ids(sizes: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    """For each special token among the fields of a Config, once per side: the field's name, the
    token's id, and the size of the vocabulary that holds it."""
    source = sizes["vocab_size"]
    for name in ("pad_id", "bos_id", "eos_id"):
        if name in sizes:
            yield name, sizes[name], sizes.get("tgt_vocab_size") or source
            own = sizes.get(f"src_{name}")
            if name != "bos_id":  # no source begins with it
                yield (name, sizes[name], source) if own is None else (f"src_{name}", own, source)


class FilledSoftmax(MaskedSoftmax):
    """Masked scores become a large negative number instead of -inf. The same weights, but a row
    that may attend to nothing attends to all keys alike instead of to none."""

    def __init__(self, fill: float):
        super().__init__()
        self.fill = fill

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        return (scores if mask is None else scores.masked_fill(~mask, self.fill)).softmax(dim=-1)


class PrunedSoftmax(MaskedSoftmax):
    """A softmax for pruned heads: they attend to nothing, and so write nothing."""

    def __init__(self, softmax: MaskedSoftmax, heads: Sequence[int]):
        super().__init__()
        self.softmax, self.heads = softmax, list(heads)

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        weights = self.softmax(scores, mask)
        left = weights.new_ones(weights.shape[1])
        left[self.heads] = 0
        return weights * left[:, None, None]


class StdNorm(nn.Module):
    """weight · (x − mean) / (std + eps) + bias: the unbiased standard deviation, and eps outside
    the root (The Annotated Transformer)."""

    def __init__(self, d_model: int, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        std = x.std(dim=-1, keepdim=True)
        return self.weight * (x - x.mean(dim=-1, keepdim=True)) / (std + self.eps) + self.bias


class UnbiasedNorm(nn.Module):
    """weight · (x − mean) / √(unbiased variance + eps), and a shift only if `bias`
    (mr-raccoon-97/vanilla-transformer)."""

    bias: nn.Parameter | None

    def __init__(self, d_model: int, bias: bool, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.register_parameter("bias", nn.Parameter(torch.zeros(d_model)) if bias else None)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        variance, mean = torch.var_mean(x, dim=-1, keepdim=True)
        x = self.weight * (x - mean) * (variance + self.eps).rsqrt()
        return x if self.bias is None else x + self.bias


class DropoutFeedForward(FeedForward):
    """The paper's feed-forward with dropout after the ReLU."""

    def __init__(self, d_model: int, d_ff: int, dropout: float, bias: bool = True):
        super().__init__(d_model, d_ff)
        self.linear1 = nn.Linear(d_model, d_ff, bias)
        self.dropout = nn.Dropout(dropout)
        self.linear2 = nn.Linear(d_ff, d_model, bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.linear1(x).relu()))


class LogSoftmaxLinear(nn.Linear):
    """A generator whose output is log-probabilities."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input).log_softmax(dim=-1)


class PositionsFromOne(PositionalEncoding):
    """Sinusoids whose frequencies are scale ** (-2k / d_model) with k from 1, not from 0: the
    quickest pair turns by less than one radian a position (mr-raccoon-97/vanilla-transformer).
    """

    def __init__(self, max_length: int, d_model: int, scale: float = 10000.0):
        super().__init__(max_length, d_model, scale)
        position = torch.arange(max_length, dtype=torch.float64)[:, None]
        k = torch.arange(d_model) // 2 + 1
        angle = position * scale ** (-2 * k.double() / d_model)
        even = torch.arange(d_model) % 2 == 0
        self.table = torch.where(even, angle.sin(), angle.cos()).to(self.table.dtype)


@dataclass(frozen=True)
class ScaledPositions(Config):
    """Sizes of a model whose positional scale N can be set."""

    scale: float = 10000.0


class KeyValueAttention(MultiHeadAttention):
    """No biases, and key and value inputs may have widths of their own
    (mr-raccoon-97/vanilla-transformer). key: (batch, key, d_key); value: (batch, key, d_value).
    """

    def __init__(self, d_model: int, n_heads: int, d_key: int = 0, d_value: int = 0):
        super().__init__(d_model, n_heads)
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_key or d_model, d_model, bias=False)
        self.value = nn.Linear(d_value or d_model, d_model, bias=False)
        self.output = nn.Linear(d_model, d_model, bias=False)


@dataclass(frozen=True)
class SlicedHeads(Config):
    """Sizes of a model whose heads each read a slice of the embedding and widen it to
    `hidden_size`."""

    hidden_size: int = 64


class SlicedLinear(nn.Module):
    """Each head its own slice of the embedding, through its own projection, one after the other.

    (batch, length, d_model) → (batch, length, heads · hidden_size)
    """

    def __init__(self, d_model: int, n_heads: int, hidden_size: int):
        super().__init__()
        self.heads = nn.ModuleList(
            nn.Linear(d_model // n_heads, hidden_size) for _ in range(n_heads)
        )

    def forward(self, x: Tensor) -> Tensor:
        slices = x.chunk(len(self.heads), dim=-1)
        outputs = [head(part) for head, part in zip(self.heads, slices, strict=True)]
        return torch.cat(outputs, dim=-1)


class SlicedAttention(MultiHeadAttention):
    """Heads that each read only their own slice of the embedding (Max van Dijck)."""

    def __init__(self, d_model: int, n_heads: int, hidden_size: int):
        super().__init__(d_model, n_heads)
        self.query, self.key, self.value = (
            SlicedLinear(d_model, n_heads, hidden_size) for _ in range(3)
        )
        self.output = nn.Linear(n_heads * hidden_size, d_model)


class PreNormEncoderLayer(EncoderLayer):
    """Norm before each sublayer, inside the residual branch (Xiong et al. 2020)."""

    norm_first = True

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        y = self.norm1(x)
        x = x + self.dropout(self.self_attn(y, y, y, mask))
        return x + self.dropout(self.feed_forward(self.norm2(x)))


class PreNormDecoderLayer(DecoderLayer):
    """Norm before each sublayer, inside the residual branch (Xiong et al. 2020)."""

    norm_first = True

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        y = self.norm1(x)
        x = x + self.dropout(self.self_attn(y, y, y, mask))
        y = self.norm2(x)
        x = x + self.dropout(self.cross_attn(y, memory, memory, memory_mask))
        return x + self.dropout(self.feed_forward(self.norm3(x)))


class LearnedPositions(nn.Embedding):
    """A learned vector per position. Returns the table, (position, d_model)."""

    explained = "one learned vector per position"

    # As any table of positions, it is called with a length and not with ids.
    def forward(self, length: int) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.weight[:length]


class WideAttention(MultiHeadAttention):
    """Heads as wide as the model, d_head = d_model, and projections without bias, and scores
    of its own (Bloem 2019)."""

    def __init__(self, d_model: int, n_heads: int, dropout: float = 0.0):
        super().__init__(d_model, n_heads, dropout)
        wide = n_heads * d_model
        self.query = nn.Linear(d_model, wide, bias=False)
        self.key = nn.Linear(d_model, wide, bias=False)
        self.value = nn.Linear(d_model, wide, bias=False)
        self.output = nn.Linear(wide, d_model)
        self.scores = FourthRootScores()


class FourthRootScores(Scores):
    """Queries and keys each divided by the fourth root of the head size (Bloem 2019). `scaling`:
    what the page Inside a head says of it."""

    scaling = "This model divides q and k each by the fourth root, with the same result."

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        root = q.shape[-1] ** -0.25
        return (q * root) @ (k * root).transpose(-2, -1)


@dataclass(frozen=True)
class ClassifierConfig(Config):
    """Sizes of a classifier."""

    n_decoder_layers: int = 0
    n_classes: int = 2

    def __post_init__(self):
        super().__post_init__()
        if self.n_decoder_layers:
            raise ValueError(
                f"a classifier has no decoder layers, but {self.n_decoder_layers} were given"
            )

    def check_heads(self) -> None:
        """Heads are as wide as the model, however many there are."""

    @property
    def d_head(self) -> int:
        return self.d_model


class Classifier(ProbedModel):
    """Encoder layers, then the mean over the text's positions, then a class (Bloem 2019).

    src: token ids, (batch, length). Logits: (batch, 1, n_classes), one row for the whole text.
    """

    def __init__(self, config: ClassifierConfig):
        super().__init__()
        self.config = config
        self.src_embedding = Embedding(config)
        self.encoder = Encoder(config)
        self.generator = nn.Linear(config.d_model, config.n_classes)

    def sides(self) -> tuple[Side, ...]:
        layers = tuple(f"encoder.layers.{i}" for i in range(len(self.encoder.layers)))
        text = "src", "source", "encoder", "src_embedding", layers, "encoder.norm"
        return (Side(*text, ends=self.config.eos_id >= 0, predicts="class"),)

    def sites(self) -> tuple[Site, ...]:
        return tuple(
            sites_of(
                "encoder", "encoder self-attention", "encoder", self.encoder.layers, ("src", "src"),
                "self_attn", ("src_padding",),
            )
        )  # fmt: skip

    def logits(self, x: Tensor, ids: Tensor) -> Tensor:
        """From the encoder's output, (batch, length, d_model): the mean over what is not padding,
        then the classes."""
        real = (ids != self.config.pad_id)[..., None]
        # A text of padding alone: the mean is zero, and the generator's bias decides.
        mean = (x * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True).clamp(min=1)
        return self.generator(mean)

    def hidden(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        return self.encoder(self.src_embedding(src), src_mask)

    def forward(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        return self.logits(self.hidden(src, src_mask), src)


@dataclass(frozen=True)
class DecoderOnlyConfig(Config):
    """Sizes of a decoder without an encoder."""

    n_encoder_layers: int = 0

    def __post_init__(self):
        super().__post_init__()
        if self.n_encoder_layers:
            raise ValueError(
                "a decoder-only model has no encoder layers, but "
                f"{self.n_encoder_layers} were given"
            )


@dataclass(frozen=True)
class LocalConfig(Config):
    """Sizes of a model with local attention."""

    window: int = 4  # tokens, the query's own included

    def __post_init__(self):
        super().__post_init__()
        if self.window < 1:
            raise ValueError(f"window must be at least 1, not {self.window}")


class LocalTransformer(Transformer):
    """The paper's model with local self-attention: a token attends to those fewer than `window`
    away, in the decoder to earlier ones alone (Beltagy et al. 2020, section 3.1)."""

    def sites(self) -> tuple[Site, ...]:
        assert isinstance(self.config, LocalConfig)
        window = self.config.window
        return tuple(
            site if site.kind == "cross" else replace(site, window=window)
            for site in super().sites()
        )


class SelfDecoder(Encoder):
    """A stack of decoder layers without cross-attention. Such a layer is an encoder layer: that its
    tokens attend to no later ones is the mask's doing."""

    def __init__(self, config: DecoderOnlyConfig):
        super().__init__(config)  # of no encoder layers
        self.layers.extend(EncoderLayer(config) for _ in range(config.n_decoder_layers))


class DecoderOnly(ProbedModel):
    """The paper's decoder without cross-attention: one text, and what may come next (Liu et al.
    2018; Radford et al. 2018). Embedding and generator share their matrix, as in the paper.

    tgt: token ids, (batch, length). Logits: (batch, length, vocab_size); the row of position i
    scores the token at i + 1.
    """

    def __init__(self, config: DecoderOnlyConfig):
        super().__init__()
        self.config = config
        self.tgt_embedding = Embedding(config)
        self.decoder = SelfDecoder(config)
        self.generator = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.generator.weight = self.tgt_embedding.token.weight
        reset_parameters(self)

    def sides(self) -> tuple[Side, ...]:
        layers = tuple(f"decoder.layers.{i}" for i in range(len(self.decoder.layers)))
        text = "tgt", "text", "decoder", "tgt_embedding", layers, "decoder.norm"
        return (Side(*text, begins=self.config.bos_id >= 0, predicts="next token"),)

    def sites(self) -> tuple[Site, ...]:
        return tuple(
            sites_of(
                "decoder", "decoder self-attention", "decoder", self.decoder.layers, ("tgt", "tgt"),
                "self_attn", ("causal", "tgt_padding"),
            )
        )  # fmt: skip

    def logits(self, x: Tensor, ids: Tensor | None = None) -> Tensor:
        return self.generator(x)

    def hidden(self, tgt: Tensor, tgt_mask: Tensor | None = None) -> Tensor:
        return self.decoder(self.tgt_embedding(tgt), tgt_mask)

    def forward(self, tgt: Tensor, tgt_mask: Tensor | None = None) -> Tensor:
        return self.logits(self.hidden(tgt, tgt_mask), tgt)
