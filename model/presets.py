"""Known systems by name: the paper's model with the parts that they do differently.

headlight presets         a table of all of them
headlight presets NAME    parameter names and shapes of one, at the sizes shown in the table
"""

import argparse
from collections.abc import Callable
from functools import cache
from threading import RLock

import torch
from torch import Tensor, nn

from headlight.model.arguments import Parser
from headlight.model.card import parameter_count
from headlight.model.families.family import Preset, Sizes
from headlight.model.families.registry import families
from headlight.model.sites import LayerList, ProbedModel, Side
from headlight.model.transformer import (
    Config,
    DecoderLayer,
    Embedding,
    EncoderLayer,
    FeedForward,
    MaskedSoftmax,
    MultiHeadAttention,
    TokenEmbedding,
    Transformer,
    reset_parameters,
)
from headlight.model.variants import (
    Classifier,
    ClassifierConfig,
    DecoderOnly,
    DecoderOnlyConfig,
    DropoutFeedForward,
    FilledSoftmax,
    KeyValueAttention,
    LearnedPositions,
    LocalConfig,
    LocalTransformer,
    LogSoftmaxLinear,
    PositionsFromOne,
    PreNormDecoderLayer,
    PreNormEncoderLayer,
    ScaledPositions,
    SlicedAttention,
    SlicedHeads,
    StdNorm,
    TwoVocabularies,
    UnbiasedNorm,
    WideAttention,
)


def paper(config: Config) -> Transformer:
    """Vaswani et al. 2017: post-norm, sinusoids, one shared embedding matrix."""
    return Transformer(config)


def pre_norm(config: Config) -> Transformer:
    """The paper's model with pre-norm layers and a final norm on each stack."""
    model = Transformer(config)
    _norm_first(model)
    reset_parameters(model)
    return model


def annotated(config: TwoVocabularies) -> Transformer:
    """The Annotated Transformer's code: pre-norm with its own norm, nothing shared between
    embeddings and generator, log-probabilities."""
    model = Transformer(config)
    _norm_first(model)
    _swap(model, nn.LayerNorm, lambda: StdNorm(config.d_model))
    _swap(model, MaskedSoftmax, lambda: FilledSoftmax(-1e9))
    _swap(model, FeedForward, lambda: _with_dropout(config))
    model.tgt_embedding.token = TokenEmbedding(config.tgt_vocab, config.d_model)
    model.generator = LogSoftmaxLinear(config.d_model, config.tgt_vocab)
    _reset(model, nn.init.xavier_uniform_)
    return model


def hyunwoongko(config: TwoVocabularies) -> Transformer:
    """hyunwoongko/transformer: post-norm with its own eps, embeddings as they are, a vocabulary
    for each side, and a linear head with bias. The vector of padding is not trained."""
    model = Transformer(config)
    _swap(model, nn.LayerNorm, lambda: nn.LayerNorm(config.d_model, eps=1e-12))
    _swap(model, MaskedSoftmax, lambda: FilledSoftmax(-10000.0))
    _swap(model, FeedForward, lambda: _with_dropout(config))
    _no_dropout(model, MultiHeadAttention)
    for embedding, vocab_size, side in (
        (model.src_embedding, config.vocab_size, "src"),
        (model.tgt_embedding, config.tgt_vocab, "tgt"),
    ):
        pad_id, _, _ = config.special_ids(side)
        padding = pad_id if 0 <= pad_id < vocab_size else None
        embedding.token = nn.Embedding(vocab_size, config.d_model, padding_idx=padding)
    model.generator = nn.Linear(config.d_model, config.tgt_vocab)
    _reset(model, nn.init.kaiming_uniform_)
    return model


def vanilla(config: ScaledPositions) -> Transformer:
    """mr-raccoon-97/vanilla-transformer: no biases in projections and feed-forward, norms over
    the unbiased variance, frequencies from k = 1, dropout in the feed-forward alone. It has layers
    only: embeddings and generator are the paper's."""
    model = Transformer(config)
    sizes = config.d_model, config.n_heads
    _swap(model, MultiHeadAttention, lambda: KeyValueAttention(*sizes))
    _swap(model, FeedForward, lambda: _with_dropout(config, bias=False))
    for stack, bias in ((model.encoder, False), (model.decoder, True)):
        _swap(stack, nn.LayerNorm, lambda bias=bias: UnbiasedNorm(config.d_model, bias))
    _no_dropout(model, EncoderLayer, DecoderLayer, Embedding)
    for embedding in (model.src_embedding, model.tgt_embedding):
        embedding.position = PositionsFromOne(config.max_length, config.d_model, config.scale)
    return model


def van_dijck(config: SlicedHeads) -> Transformer:
    """Max van Dijck's walk-through: each head reads its own slice of the embedding and widens it
    to hidden_size; embeddings as they are, and not shared; all weights as PyTorch draws them."""
    model = Transformer(config)
    sizes = config.d_model, config.n_heads, config.hidden_size
    _swap(model, MultiHeadAttention, lambda: SlicedAttention(*sizes))
    _swap(model, MaskedSoftmax, lambda: FilledSoftmax(-1e9))
    _no_dropout(model, EncoderLayer, DecoderLayer, Embedding)
    for embedding in (model.src_embedding, model.tgt_embedding):
        embedding.token = nn.Embedding(config.vocab_size, config.d_model)
    model.generator = nn.Linear(config.d_model, config.vocab_size)
    _reset_linear(model)
    return model


def bloem(config: ClassifierConfig) -> Classifier:
    """Bloem 2019, "Transformers from scratch": an encoder that classifies, post-norm, with
    learned positions and heads as wide as the model; all weights as PyTorch draws them."""
    model = Classifier(config)
    embedding = model.src_embedding
    embedding.token = nn.Embedding(config.vocab_size, config.d_model)
    embedding.position = LearnedPositions(config.max_length, config.d_model)
    # The notebook has no dropout, which is a rate of 0. At another whole tokens go at a time: a
    # verdict must not hang on one word that training happened to hold.
    embedding.dropout = nn.Dropout1d(config.dropout)
    for layer in model.encoder.layers:
        layer.self_attn = WideAttention(config.d_model, config.n_heads, config.dropout)
    model.generator = LogSoftmaxLinear(config.d_model, config.n_classes)
    return model


def decoder_only(config: DecoderOnlyConfig) -> DecoderOnly:
    """Liu et al. 2018, Radford et al. 2018: the paper's decoder without cross-attention."""
    return DecoderOnly(config)


def window(config: LocalConfig) -> LocalTransformer:
    """Beltagy et al. 2020, Longformer: self-attention over neighbours alone."""
    return LocalTransformer(config)


PRESETS = {
    "paper": Preset(
        "Vaswani et al. 2017",
        paper,
        Config,
        "nothing: this is the paper",
        dict(vocab_size=37000),
        {},
    ),
    "pre_norm": Preset(
        "The paper with its norms moved (Xiong et al. 2020)",
        pre_norm,
        Config,
        "norm before each sublayer, plus a final one after each stack",
        dict(vocab_size=37000),
        {},
        "the paper's sizes",
    ),
    "annotated": Preset(
        "The Annotated Transformer",
        annotated,
        TwoVocabularies,
        "pre-norm, its own norm (unbiased std, eps outside the root), nothing shared, masked "
        "scores -1e9, log-softmax",
        dict(vocab_size=11),
        dict(max_length=5000),
    ),
    "hyunwoongko": Preset(
        "hyunwoongko/transformer",
        hyunwoongko,
        TwoVocabularies,
        "no √d_model, two vocabularies, padding's vector untrained, output layer with bias, "
        "masked scores -10000, norm with eps 1e-12",
        dict(vocab_size=5893, tgt_vocab_size=7855),
        dict(max_length=256),
    ),
    "vanilla": Preset(
        "mr-raccoon-97/vanilla-transformer",
        vanilla,
        ScaledPositions,
        "no biases, norms with unbiased variance (no shift in the encoder), frequencies from k "
        "= 1, dropout only in the feed-forward",
        dict(vocab_size=37000),
        dict(dropout=0.2),
        "the paper's sizes, its own dropout rate",
    ),
    "van_dijck": Preset(
        "Max van Dijck's walk-through",
        van_dijck,
        SlicedHeads,
        "each head reads a slice of the embedding and widens it, no √d_model, feed-forward × 4",
        dict(vocab_size=3),
        dict(d_model=18, n_heads=6, d_ff=72, dropout=0.0),
    ),
    "bloem": Preset(
        "The notebook after Peter Bloem",
        bloem,
        ClassifierConfig,
        "an encoder that classifies: heads as wide as the model, ∜d on queries and keys, learned "
        "positions, mean over positions, log-softmax",
        dict(vocab_size=50000),
        dict(d_model=128, d_ff=512, max_length=512, dropout=0.0),
        "sizes of our choice, because the notebook names none",
    ),
    "decoder_only": Preset(
        "The paper's decoder only (Liu et al. 2018, Radford et al. 2018)",
        decoder_only,
        DecoderOnlyConfig,
        "no encoder and no cross-attention: it reads one text and predicts what comes next",
        dict(vocab_size=37000),
        {},
        "the paper's sizes",
    ),
    "window": Preset(
        "The paper with local attention (Beltagy et al. 2020)",
        window,
        LocalConfig,
        "self-attention within a window: a token attends to those fewer than 4 away",
        dict(vocab_size=37000),
        {},
        "the paper's sizes, and a window of our choice",
    ),
}

# Those whose weights other people have trained, see families/.
FAMILIES = {name: preset for family in families() for name, preset in family.presets.items()}


def preset_of(name: str) -> Preset:
    """A system or a family by name. Raises ValueError for another name."""
    for presets in (PRESETS, FAMILIES):
        if name in presets:
            return presets[name]
    raise ValueError(f"there is no preset {name!r}; choose from {', '.join([*PRESETS, *FAMILIES])}")


# PyTorch has one random generator on the CPU for all threads: hold this lock to draw weights from
# it.
GENERATOR = RLock()


def build(name: str, **sizes) -> ProbedModel:
    """A model of the preset `name` with random weights; `sizes` are the fields of its Config.

    >>> build("annotated", vocab_size=9, d_model=8, n_heads=2).sites()[0].name
    'encoder.layers.0.self_attn'
    """
    preset = preset_of(name)
    with GENERATOR:
        return preset.build(preset.config(**sizes))


def own_sizes(name: str, vocab_size: int = 0) -> Sizes:
    """The sizes that the system is shown at: those of its own code or text, and others where it
    names none (see Preset.whose_sizes); with another vocabulary if given."""
    preset = preset_of(name)
    return {**(dict(vocab_size=vocab_size) if vocab_size else preset.vocabulary), **preset.sizes}


@cache
def without_tensors(name: str) -> ProbedModel:
    """A model of the preset at its own sizes, on the device "meta": for its structure alone."""
    with torch.device("meta"):
        return build(name, **own_sizes(name))


def sides(name: str) -> tuple[Side, ...]:
    """The texts that models of the preset read."""
    return without_tensors(name).sides()


def parameters(name: str, vocab_size: int = 0) -> int:
    """How many trainable numbers the preset has at `own_sizes`; no tensor is made."""
    with torch.device("meta"):
        return parameter_count(build(name, **own_sizes(name, vocab_size)))


def _swap(model: nn.Module, kind: type, make: Callable[[], nn.Module]) -> None:
    """Replace each part whose type is exactly `kind` by `make()`."""
    for name, part in list(model.named_modules()):
        if type(part) is kind:
            model.set_submodule(name, make())


def _norm_first(model: Transformer) -> None:
    config = model.config
    encoder, decoder = model.encoder, model.decoder
    encoder.layers = LayerList(PreNormEncoderLayer(config) for _ in encoder.layers)
    decoder.layers = LayerList(PreNormDecoderLayer(config) for _ in decoder.layers)
    encoder.norm, decoder.norm = (nn.LayerNorm(config.d_model) for _ in range(2))


def _with_dropout(config: Config, bias: bool = True) -> DropoutFeedForward:
    return DropoutFeedForward(config.d_model, config.d_ff, config.dropout, bias)


def _no_dropout(model: ProbedModel, *kinds: type) -> None:
    for part in model.modules():
        if isinstance(part, kinds):
            part.dropout = nn.Dropout(0.0)


def _reset(model: ProbedModel, matrix: Callable[[Tensor], object]) -> None:
    """Matrices by `matrix`, biases as PyTorch draws them."""
    _reset_linear(model)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            matrix(parameter)


def _reset_linear(model: ProbedModel) -> None:
    """Linear layers as PyTorch draws them."""
    for part in model.modules():
        if isinstance(part, nn.Linear):
            part.reset_parameters()


def main(arguments: list[str] | None = None) -> None:
    parser = Parser(
        prog="headlight presets",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", choices=[*PRESETS, *FAMILIES], metavar="NAME")
    name = parser.parse_args(arguments).name
    if not name:
        presets = PRESETS | FAMILIES
        width = max(map(len, presets))
        print(f"{'preset':{width}}  {'parameters':>11}  differs from the paper in")
        for name, preset in presets.items():
            print(f"{name:{width}}  {parameters(name):>11,}  {preset.differs}")
        return
    sizes = own_sizes(name)
    model = build(name, **sizes)
    for parameter, tensor in model.named_parameters():
        print(f"{parameter:44}  {' × '.join(map(str, tensor.shape)):>14}  {tensor.numel():>11,}")
    listed = ", ".join(
        f"{key} {value:,}" if type(value) in (int, float) else f"{key} {value}"
        for key, value in sizes.items()
    )
    whose = preset_of(name).whose_sizes
    print(f"{parameter_count(model):,} parameters at {whose}: {listed}")
