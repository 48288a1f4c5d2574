"""Marian's translators (Junczys-Dowmunt et al. 2018), such as those of Opus-MT: the paper's model
with sines and cosines in halves, another activation, and a bias on the logits."""

from dataclasses import dataclass

from torch import nn

from model.families.parts import ActivatedFeedForward, HalvedPositions
from model.transformer import Embedding, TokenEmbedding, Transformer
from model.variants import TwoVocabularies


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

    def __init__(self, config: MarianConfig, vocab_size: int):
        nn.Module.__init__(self)
        token = TokenEmbedding if config.scaled else nn.Embedding
        self.token = token(vocab_size, config.d_model)
        self.position = HalvedPositions(config.max_length, config.d_model)
        self.dropout = nn.Dropout(config.dropout)


def marian(config: MarianConfig) -> Transformer:
    """Opus-MT: post-norm as in the paper; sinusoids in halves, a bias on the logits, embeddings and
    output shared or not."""
    model = Transformer(config)
    model.src_embedding = HalvedEmbedding(config, config.vocab_size)
    model.tgt_embedding = HalvedEmbedding(config, config.tgt_vocab)
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
