"""Marian's translators (Junczys-Dowmunt et al. 2018), such as those of Opus-MT: the paper's model
with sines and cosines in halves, another activation, and a bias on the logits."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from headlight.model.families.family import (
    ACTIVATION_NAMES,
    ONE_MATRIX,
    Family,
    Preset,
    Shapes,
    Sizes,
    Ties,
    layer_names,
)
from headlight.model.families.parts import ActivatedFeedForward, HalvedPositions
from headlight.model.families.values import Described
from headlight.model.transformer import Embedding, TokenEmbedding, Transformer
from headlight.model.variants import TwoVocabularies

MOST_POSITIONS = 2**16  # of a table that is computed


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


def marian_sizes(config: Described, weights: Shapes) -> Sizes:
    for name in ("normalize_before", "normalize_embedding", "add_final_layer_norm"):
        config.refuse(name, False)
    sizes: Sizes = dict(
        vocab_size=config.count("vocab_size"),
        tgt_vocab_size=config.count("decoder_vocab_size", default=config.count("vocab_size")),
        d_model=config.count("d_model", "hidden_size"),
        n_heads=config.count("encoder_attention_heads", "num_attention_heads"),
        d_ff=config.count("encoder_ffn_dim"),
        n_encoder_layers=config.count("encoder_layers", "num_hidden_layers"),
        n_decoder_layers=config.count("decoder_layers"),
        max_length=config.count("max_position_embeddings", most=MOST_POSITIONS),
        activation=ACTIVATION_NAMES[config.choice("activation_function", ACTIVATION_NAMES, "gelu")],
        scaled=config.flag("scale_embedding"),
    )
    for ours, theirs in (("n_heads", "decoder_attention_heads"), ("d_ff", "decoder_ffn_dim")):
        config.refuse(theirs, sizes[ours])
    return sizes


def marian_ties(config: Described) -> Ties:
    if not config.flag("tie_word_embeddings", True):
        return ()
    if not config.flag("share_encoder_decoder_embeddings", True):
        return (("decoder.embed_tokens.weight", "lm_head.weight"),)
    sides = "decoder.embed_tokens.weight", "encoder.embed_tokens.weight"
    return (("shared.weight", "lm_head.weight", *sides),)


_MARIAN_ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


def _marian_layers(stack: str, attentions: Mapping[str, str], norms: tuple[str, ...]):
    names = {
        f"{ours}.{part}": f"{theirs}.{their}"
        for ours, theirs in attentions.items()
        for part, their in _MARIAN_ATTENTION.items()
    }
    names |= {f"norm{i}": norm for i, norm in enumerate(norms, start=1)}
    names |= {"feed_forward.linear1": "fc1", "feed_forward.linear2": "fc2"}
    return layer_names(f"{stack}.layers.{{}}", f"{stack}.layers.{{}}", names)


PRESETS = {
    "marian": Preset(
        "Marian (Junczys-Dowmunt et al. 2018), Opus-MT",
        marian,
        MarianConfig,
        "all sines before all cosines, swish instead of ReLU, a bias on the logits, targets "
        "start with the padding token",
        dict(vocab_size=58101),
        dict(max_length=512, pad_id=58100, bos_id=58100, eos_id=0),
        "the sizes of Opus-MT",
        examples="translation",
    ),
}
FAMILY = Family(
    "marian",
    marian_sizes,
    {
        "src_embedding.token": "encoder.embed_tokens",
        "tgt_embedding.token": "decoder.embed_tokens",
        "generator": "lm_head",
        "generator.bias": "final_logits_bias",
        **_marian_layers(
            "encoder", {"self_attn": "self_attn"}, ("self_attn_layer_norm", "final_layer_norm")
        ),
        **_marian_layers(
            "decoder",
            {"self_attn": "self_attn", "cross_attn": "encoder_attn"},
            ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
        ),
    },
    "model.",
    {
        "n_encoder_layers": r"encoder\.layers\.(\d+)\.",
        "n_decoder_layers": r"decoder\.layers\.(\d+)\.",
    },
    "encoder.embed_tokens.weight",
    marian_ties,
    ONE_MATRIX | {"shared": ("src_embedding.token.weight", "tgt_embedding.token.weight")},
    r"(encoder|decoder)\.embed_(positions|tokens)\.weight$|(shared|lm_head)\.weight$",
    model_types=("marian",),
    presets=PRESETS,
    starts=True,
)
