"""Marian's translators (Junczys-Dowmunt et al. 2018), such as those of Opus-MT: the paper's model
with sines and cosines in halves, another activation, and a bias on the logits. In its small ones,
such as Firefox has, a recurrent unit stands in place of the decoder's self-attention."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from headlight.model.families.parts import (
    SSRU,
    ActivatedFeedForward,
    HalvedPositions,
    SpreadPositions,
)
from headlight.model.transformer import (
    Config,
    DecoderLayer,
    Embedding,
    TokenEmbedding,
    Transformer,
)
from headlight.model.variants import TwoVocabularies


@dataclass(frozen=True)
class MarianConfig(TwoVocabularies):
    """Sizes of a Marian. A target begins with bos_id, which is its padding token.

    activation  of its feed-forwards
    scaled      whether embeddings are multiplied by √d_model, as in the paper
    shared      whether source and target share their embeddings
    tied        whether target embeddings and output share their matrix
    """

    activation: str = "silu"
    scaled: bool = True
    shared: bool = True
    tied: bool = True
    special_tokens: tuple[str, ...] = ("<pad>", "<pad>", "</s>")


class HalvedEmbedding(Embedding):
    """Token + sinusoids in halves."""

    def __init__(self, config: MarianConfig, vocab_size: int, positions: HalvedPositions):
        nn.Module.__init__(self)
        token = TokenEmbedding if config.scaled else nn.Embedding
        self.token = token(vocab_size, config.d_model)
        self.position = positions
        self.dropout = nn.Dropout(config.dropout)


def marian(config: MarianConfig) -> Transformer:
    """Opus-MT: post-norm as in the paper; sinusoids in halves, a bias on the logits, embeddings and
    output shared or not."""
    return _with_parts(Transformer(config), HalvedPositions)


def marian_ssru(config: MarianConfig) -> "RecurrentTransformer":
    """The small models of Kim et al. 2019: a recurrent unit in place of the decoder's
    self-attention; positions as Marian itself computes them."""
    model = RecurrentTransformer(config)
    model.decoder.layers = nn.ModuleList(RecurrentLayer(config) for _ in model.decoder.layers)
    return _with_parts(model, SpreadPositions)


class RecurrentLayer(DecoderLayer):
    """A recurrent unit, attention to the encoder's output, feed-forward (Kim et al. 2019, section
    3.1)."""

    sublayers: ClassVar = {"recurrence": "norm1", "cross_attn": "norm2", "feed_forward": "norm3"}

    def __init__(self, config: Config):
        super().__init__(config)
        del self.self_attn
        self.recurrence = SSRU(config.d_model)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        x = self.norm1(x + self.dropout(self.recurrence(x)))
        x = self.norm2(x + self.dropout(self.cross_attn(x, memory, memory, memory_mask)))
        return self.norm3(x + self.dropout(self.feed_forward(x)))


class RecurrentTransformer(Transformer):
    """Its target attends to the source alone: there are two kinds of attention, and two masks."""

    def hidden(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        return self.decode(tgt, self.encode(src, src_mask), None, memory_mask)


def _with_parts(model: Transformer, positions: type[HalvedPositions]) -> Transformer:
    """What all of Marian's models have otherwise than the paper's."""
    config = model.config
    sizes = config.max_length, config.d_model
    model.src_embedding = HalvedEmbedding(config, config.vocab_size, positions(*sizes))
    model.tgt_embedding = HalvedEmbedding(config, config.tgt_vocab, positions(*sizes))
    if config.shared:
        model.tgt_embedding.token.weight = model.src_embedding.token.weight
    model.generator = nn.Linear(config.d_model, config.tgt_vocab)
    if config.tied:
        model.generator.weight = model.tgt_embedding.token.weight
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers:
            layer.feed_forward = ActivatedFeedForward(
                config.d_model, config.d_ff, config.activation
            )
    return model
