"""BERT (Devlin et al. 2018): an encoder alone that fills in masked tokens. Its small descendants,
such as MiniLM (Wang et al. 2020), make a vector of a whole text instead."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from headlight.model.families.family import (
    ACTIVATION_NAMES,
    EPSILON,
    Family,
    Preset,
    Shapes,
    Sizes,
    layer_names,
    ties_of,
)
from headlight.model.families.parts import ACTIVATIONS, ActivatedFeedForward
from headlight.model.families.values import Described
from headlight.model.masks import padding
from headlight.model.sites import LayerList, ProbedModel, Side, Site, sites_of
from headlight.model.transformer import Config, Embedding, Encoder
from headlight.model.variants import LearnedPositions


@dataclass(frozen=True)
class BertConfig(Config):
    """Sizes of a BERT.

    n_segments  texts that an input may be made of, each marked by a vector; ours is the first
    norm_eps    of its LayerNorms; activation: of its feed-forwards
    predicts    "masked token", or "embedding" for a model without that head
    pooling     how an embedding is made of the text's tokens: their "mean", in each number the
                largest ("max"), the first ("cls") or the "last token"
    dense       linear maps after that, each (numbers that come out, with bias, activation)
    normalized  whether an embedding is divided by its length in the end
    tied        whether embeddings and output share their matrix
    """

    n_decoder_layers: int = 0
    n_segments: int = 2
    norm_eps: float = 1e-12
    activation: str = "gelu"
    predicts: str = "masked token"
    pooling: str = "mean"
    dense: tuple[tuple[int, bool, str], ...] = ()
    normalized: bool = False
    tied: bool = True
    special_tokens: tuple[str, ...] = ("[PAD]", "[CLS]", "[SEP]")

    @property
    def d_embedding(self) -> int:
        """Numbers of an embedding."""
        return self.dense[-1][0] if self.dense else self.d_model


class SegmentedEmbedding(Embedding):
    """Token + learned position + segment, then a norm (Devlin et al. 2018, section 3)."""

    explained = "A segment embedding is added too, and the sum with the positions is normalised."

    def __init__(self, config: BertConfig):
        super().__init__(replace(config, max_length=1))  # without a large table of sinusoids
        self.token = nn.Embedding(config.vocab_size, config.d_model)
        self.position = LearnedPositions(config.max_length, config.d_model)
        self.segment = nn.Embedding(config.n_segments, config.d_model)
        self.norm = nn.LayerNorm(config.d_model, config.norm_eps)

    def forward(self, ids: Tensor) -> Tensor:
        segment = self.segment(torch.zeros_like(ids))  # one text is the first segment throughout
        x = self.token(ids) + self.position(ids.shape[1]) + segment
        return self.dropout(self.norm(x))


class MaskedTokenHead(nn.Module):
    """From vectors to logits, by the embedding matrix if it is tied, behind a layer and a norm
    (Devlin et al. 2018, section 3.1, and their code): (batch, length, d_model) → (batch, length,
    vocab_size)."""

    explained = "A linear map, an activation and a norm, then a"

    def __init__(self, config: BertConfig, embedding: nn.Embedding):
        super().__init__()
        self.linear = nn.Linear(config.d_model, config.d_model)
        self.activation = ACTIVATIONS[config.activation]()
        self.norm = nn.LayerNorm(config.d_model, config.norm_eps)
        self.output = nn.Linear(config.d_model, config.vocab_size)
        if config.tied:
            self.output.weight = embedding.weight

    def forward(self, x: Tensor, ids: Tensor) -> Tensor:
        return self.output(self.norm(self.activation(self.linear(x))))


class Dense(nn.Module):
    """A linear map and an activation: (…, d_in) → (…, d_out)."""

    def __init__(self, d_in: int, d_out: int, bias: bool, activation: str):
        super().__init__()
        self.linear = nn.Linear(d_in, d_out, bias)
        self.activation = ACTIVATIONS[activation]()

    @property
    def explained(self) -> str:
        linear, activation = self.linear, type(self.activation)
        sizes = f"a linear map {linear.in_features:,} → {linear.out_features:,}"
        return sizes if activation is nn.Identity else f"{sizes} and a {activation.__name__}"

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.linear(x))


class TextEmbedding(nn.Module):
    """One vector for the whole text (Reimers and Gurevych 2019, section 3): (batch, length,
    d_model) → (batch, 1, d_embedding)."""

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = config
        widths = config.d_model, *(width for width, _, _ in config.dense)
        self.dense: LayerList[Dense] = LayerList(
            Dense(d_in, *layer) for d_in, layer in zip(widths, config.dense, strict=False)
        )

    @property
    def blocks(self) -> dict[str, str]:
        """What each of its blocks does, as `explained` of other parts."""
        takes = POOLED[self.config.pooling]
        sentences = {"pooling": f"One vector for the whole text: {takes}."}
        if self.dense:
            maps = "; ".join(layer.explained for layer in self.dense)
            sentences["dense"] = f"After the pooling: {maps}."
        if self.config.normalized:
            last = "dense" if self.dense else "pooling"
            sentences[last] += " The vector is divided by its length, so its length is 1."
        return sentences

    def forward(self, x: Tensor, ids: Tensor) -> Tensor:
        vector = POOLINGS[self.config.pooling](x, ~padding(ids, self.config.pad_id)[..., None])
        for layer in self.dense:
            vector = layer(vector)
        return nn.functional.normalize(vector, dim=-1) if self.config.normalized else vector


def mean(x: Tensor, real: Tensor) -> Tensor:
    return (x * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True).clamp(1)


def largest(x: Tensor, real: Tensor) -> Tensor:
    return x.masked_fill(~real, torch.finfo(x.dtype).min).amax(dim=1, keepdim=True)


def first(x: Tensor, real: Tensor) -> Tensor:
    return x[:, :1]


def last(x: Tensor, real: Tensor) -> Tensor:
    place = torch.arange(x.shape[1], device=x.device)[:, None]
    return x.take_along_dim((place * real).argmax(dim=1, keepdim=True), dim=1)


# From vectors, (batch, length, d_model), and which are no padding, (batch, length, 1), to one,
# (batch, 1, d_model).
POOLINGS = {"mean": mean, "max": largest, "cls": first, "last token": last}
POOLED = {  # the same in words
    "mean": "the mean over all tokens except padding",
    "max": "each number is the maximum over all tokens except padding",
    "cls": "that of its first token",
    "last token": "that of its last token",
}


class Bert(ProbedModel):
    """Post-norm encoder layers over one text between [CLS] and [SEP].

    src: token ids, (batch, length). Logits: (batch, length, vocab_size), where row i scores the
    token at i; or the embedding, (batch, 1, d_embedding).
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = config
        self.src_embedding = SegmentedEmbedding(config)
        self.encoder = Encoder(config)
        for layer in self.encoder.layers:
            sizes = config.d_model, config.d_ff, config.activation
            layer.feed_forward = ActivatedFeedForward(*sizes)
            layer.norm1, layer.norm2 = (
                nn.LayerNorm(config.d_model, config.norm_eps) for _ in range(2)
            )
        if config.predicts == "masked token":
            self.generator = MaskedTokenHead(config, self.src_embedding.token)
        else:
            self.generator = TextEmbedding(config)

    def sides(self) -> tuple[Side, ...]:
        layers = tuple(f"encoder.layers.{i}" for i in range(len(self.encoder.layers)))
        text = "src", "text", "encoder", "src_embedding", layers, "encoder.norm"
        assert isinstance(self.config, BertConfig)
        ends = dict(begins=self.config.bos_id >= 0, ends=self.config.eos_id >= 0)
        return (Side(*text, **ends, predicts=self.config.predicts),)

    def sites(self) -> tuple[Site, ...]:
        return tuple(
            sites_of(
                "encoder", "encoder self-attention", "encoder", self.encoder.layers, ("src", "src"),
                "self_attn", ("src_padding",),
            )
        )  # fmt: skip

    def logits(self, x: Tensor, ids: Tensor) -> Tensor:
        return self.generator(x, ids)

    def hidden(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        return self.encoder(self.src_embedding(src), src_mask)

    def forward(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        return self.logits(self.hidden(src, src_mask), src)


def bert_sizes(config: Described, weights: Shapes) -> Sizes:
    config.refuse("is_decoder", False)
    config.refuse("position_embedding_type", "absolute", None)
    head = any(name.startswith("cls.") for name in weights.shapes)
    architectures = config.values.get("architectures")
    head |= isinstance(architectures, list) and "BertForMaskedLM" in architectures
    return dict(
        vocab_size=config.count("vocab_size"),
        d_model=config.count("hidden_size"),
        n_heads=config.count("num_attention_heads"),
        d_ff=config.count("intermediate_size"),
        n_encoder_layers=config.count("num_hidden_layers"),
        max_length=config.count("max_position_embeddings"),
        n_segments=config.count("type_vocab_size", default=2),
        norm_eps=config.number("layer_norm_eps", 1e-12, *EPSILON),
        activation=ACTIVATION_NAMES[config.choice("hidden_act", ACTIVATION_NAMES, "gelu")],
        predicts="masked token" if head else "embedding",
    )


PRESETS = {
    "bert": Preset(
        "BERT (Devlin et al. 2018)",
        Bert,
        BertConfig,
        "an encoder that fills in masked tokens: learned positions and segments with a norm, GELU, "
        "no √d_model",
        dict(vocab_size=30522),
        dict(d_model=768, n_heads=12, d_ff=3072, n_encoder_layers=12, max_length=512),
        "the sizes of BERT base",
        examples="masked-token",
    ),
}
FAMILY = Family(
    "bert",
    bert_sizes,
    {
        "src_embedding.token": "embeddings.word_embeddings",
        "src_embedding.position": "embeddings.position_embeddings",
        "src_embedding.segment": "embeddings.token_type_embeddings",
        "src_embedding.norm": "embeddings.LayerNorm",
        "generator.linear": "cls.predictions.transform.dense",
        "generator.norm": "cls.predictions.transform.LayerNorm",
        "generator.output": "cls.predictions.decoder",
        **layer_names(
            "encoder.layers.{}",
            "encoder.layer.{}",
            {
                **{f"self_attn.{part}": f"attention.self.{part}" for part in ("query", "key")},
                "self_attn.value": "attention.self.value",
                "self_attn.output": "attention.output.dense",
                "norm1": "attention.output.LayerNorm",
                "feed_forward.linear1": "intermediate.dense",
                "feed_forward.linear2": "output.dense",
                "norm2": "output.LayerNorm",
            },
        ),
    },
    "bert.",
    {"n_encoder_layers": r"encoder\.layer\.(\d+)\."},
    "embeddings.word_embeddings.weight",
    ties_of(
        ("embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"),
        ("cls.predictions.bias", "cls.predictions.decoder.bias"),
        default=True,
    ),
    {"tied": ("src_embedding.token.weight", "generator.output.weight")},
    r"pooler\.dense\.|cls\.(seq_relationship|predictions\.(transform\.)?\w+)\.|cls\.predictions\.bias$",
    model_types=("bert",),
    presets=PRESETS,
    surrounds=True,
    embeds=True,
)
