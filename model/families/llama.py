"""Llama (Touvron et al. 2023) and those built like it: SmolLM2, Mistral, Qwen2, Qwen3. A pre-norm
decoder alone with RMSNorm, rotary positions, SwiGLU and, in most, groups of heads that share keys
and values."""

from dataclasses import dataclass, replace

from torch import nn

from headlight.model.families.family import (
    ACTIVATION_NAMES,
    EPSILON,
    ONE_MATRIX,
    Family,
    Preset,
    Shapes,
    Sizes,
    layer_names,
    ties_of,
)
from headlight.model.families.gpt2 import UnscaledEmbedding
from headlight.model.families.parts import (
    GatedFeedForward,
    GroupedQueryAttention,
    NoPositions,
    NormedProjection,
    RMSNorm,
)
from headlight.model.families.rotary import EACH_PAIR, NEEDED, Rotary, RotaryScores
from headlight.model.families.values import LONGEST, MOST_COUNT, CannotLoad, Described, quoted
from headlight.model.sites import LayerList, Side, Site
from headlight.model.variants import DecoderOnly, DecoderOnlyConfig, PreNormEncoderLayer

WINDOW = 4096  # tokens, where a model with a sliding window does not say how long it is
BASE = 2.0, 1e12  # least and most
ROTARY = {
    "factor": (0.01, 1e6),
    "attention_factor": (0.001, 1e3),
    "beta_fast": (0.001, 1e6),
    "beta_slow": (0.001, 1e6),
    "low_freq_factor": (0.001, 1e6),
    "high_freq_factor": (0.001, 1e6),
    "mscale": (0.0, 1e3),
    "mscale_all_dim": (0.0, 1e3),
}

GIVEN = {  # what rope_scaling or rope_parameters may say
    "type", "rope_type", "rope_theta", "partial_rotary_factor", "truncate", "finetuned",
    "original_max_position_embeddings", *ROTARY, *EACH_PAIR,
}  # fmt: skip


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
    window        tokens: each attends to those fewer than so many away, itself included (Mistral);
                  0: to all that came before
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
    window: int = 0
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
            count = len(value) if isinstance(value, tuple | list) else 1
            if name in EACH_PAIR and count != self.d_head // 2:
                raise ValueError(
                    f"{name} has {count} numbers, but heads of {self.d_head} have "
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
        self.decoder.layers = LayerList(LlamaLayer(config) for _ in range(config.n_decoder_layers))
        self.decoder.norm = RMSNorm(config.d_model, config.norm_eps)
        if config.tied:
            self.generator.weight = self.tgt_embedding.token.weight
        else:
            self.generator = nn.Linear(config.d_model, config.vocab_size, bias=False)

    def sides(self) -> tuple[Side, ...]:
        return tuple(replace(side, table=False) for side in super().sides())

    def sites(self) -> tuple[Site, ...]:
        assert isinstance(self.config, LlamaConfig)
        window = self.config.window
        return tuple(replace(site, window=window) for site in super().sites())


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
            for name, linear in (("query", self.self_attn.query), ("key", self.self_attn.key)):
                projection = NormedProjection(linear, d_head, config.norm_eps)
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


def llama_sizes(config: Described, weights: Shapes) -> Sizes:
    """Llama, Mistral, Qwen2 and Qwen3."""
    kind = str(config.values["model_type"])
    n_heads = config.count("num_attention_heads")
    length = config.count("max_position_embeddings", most=LONGEST)
    bias = kind == "qwen2" or config.flag("attention_bias")
    rotary = _rotary(config, length)
    if rotary["rotary_rule"] == "dynamic":
        length = min(int(length * dict(rotary["rotary_settings"])["factor"]), LONGEST)
    window = 0
    if (sliding := _sliding(config, kind)) and config.values.get("sliding_window", WINDOW):
        window = config.count("sliding_window", default=WINDOW)
        if sliding < config.count("num_hidden_layers"):
            # All layers have one mask. Within the window they attend to all that came before.
            length = min(length, window)
        if window >= length:
            window = 0
    return rotary | dict(
        vocab_size=config.count("vocab_size"),
        d_model=config.count("hidden_size"),
        n_heads=n_heads,
        n_key_heads=config.count("num_key_value_heads", default=n_heads),
        head_size=config.count("head_dim", default=128 if kind == "qwen3" else None)
        if config.values.get("head_dim") is not None or kind == "qwen3"
        else 0,
        d_ff=config.count("intermediate_size"),
        n_decoder_layers=config.count("num_hidden_layers"),
        max_length=length,
        norm_eps=config.number("rms_norm_eps", 1e-6, *EPSILON),
        activation=ACTIVATION_NAMES[config.choice("hidden_act", ACTIVATION_NAMES, "silu")],
        query_bias=bias,
        output_bias=bias and kind != "qwen2",
        forward_bias=config.flag("mlp_bias"),
        normed_heads=kind == "qwen3",
        window=window,
        dropout=0.0,
    )


def _sliding(config: Described, kind: str) -> int:
    """How many layers have a sliding window."""
    n_layers = config.count("num_hidden_layers")
    if kind not in ("qwen2", "qwen3"):
        return n_layers * (kind == "mistral")
    kinds, full, sliding = config.values.get("layer_types"), "full_attention", "sliding_attention"
    if kinds is None:
        full_layers = int(config.number("max_window_layers", 28, 0, MOST_COUNT))
        return max(n_layers - full_layers, 0) if config.flag("use_sliding_window") else 0
    if (
        not isinstance(kinds, list)
        or len(kinds) != n_layers
        or not {*map(str, kinds)} <= {full, sliding}
    ):
        raise CannotLoad(
            f"{config.where} has {quoted(kinds)} for layer_types; for each layer it must be "
            f"{full} or {sliding}."
        )
    if not config.flag("use_sliding_window"):
        config.refuse("layer_types", [full] * n_layers)
    return kinds.count(sliding)


def _rotary(config: Described, length: int) -> Sizes:
    """The fields rotary_*, from any of the places where configs have had them; of two, as in
    transformers, from the older."""
    places = (config.inside(name) for name in ("rope_scaling", "rope_parameters"))
    given = next((place for place in places if place.values), Described({}, config.where))
    given.refuse_others(GIVEN)
    for values in (given, config):
        values.refuse("partial_rotary_factor", 1.0, 1, None)
    place = "type" if given.values.get("rope_type") is None else "rope_type"
    rule = given.choice(place, NEEDED, "default")
    settings: Sizes = {
        name: given.number(name, least, least, most)
        for name, (least, most) in ROTARY.items()
        if given.values.get(name) is not None
    }
    settings["truncate"] = given.flag("truncate", True)
    first = given.count("original_max_position_embeddings", default=length)
    first = config.count("original_max_position_embeddings", default=first)
    if rule == "longrope":
        settings |= {name: given.numbers(name, *ROTARY["factor"]) for name in EACH_PAIR}
        settings.setdefault("factor", length / first)
    if missing := [name for name in NEEDED[rule] if not settings.get(name)]:
        raise CannotLoad(f"{config.where}: the rotary rule {rule!r} needs {', '.join(missing)}.")
    if rule == "llama3" and settings["low_freq_factor"] >= settings["high_freq_factor"]:
        raise CannotLoad(f"{config.where}: low_freq_factor is not below high_freq_factor.")
    base = config.number("rope_theta", 10000.0, *BASE)
    return dict(
        rotary_base=given.number("rope_theta", base, *BASE),
        rotary_rule=rule,
        rotary_settings=tuple(settings.items()),
        rotary_length=length if rule == "dynamic" else first,
    )


_LLAMA = {
    "self_attn.query": "self_attn.q_proj",
    "self_attn.key": "self_attn.k_proj",
    "self_attn.value": "self_attn.v_proj",
    "self_attn.output": "self_attn.o_proj",
    "self_attn.query.linear": "self_attn.q_proj",
    "self_attn.key.linear": "self_attn.k_proj",
    "self_attn.query.norm": "self_attn.q_norm",
    "self_attn.key.norm": "self_attn.k_norm",
    "norm1": "input_layernorm",
    "norm2": "post_attention_layernorm",
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.linear1": "mlp.up_proj",
    "feed_forward.linear2": "mlp.down_proj",
}


PRESETS = {
    "llama": Preset(
        "Llama (Touvron et al. 2023), SmolLM2, Mistral, Qwen2, Qwen3",
        llama,
        LlamaConfig,
        "decoder only, pre-norm with RMSNorm, rotary positions, SwiGLU, heads that share keys "
        "and values, no biases, no √d_model",
        dict(vocab_size=49152),
        dict(
            d_model=576,
            n_heads=9,
            n_key_heads=3,
            d_ff=1536,
            n_decoder_layers=30,
            max_length=8192,
            rotary_base=100000.0,
            tied=True,
            dropout=0.0,
        ),
        "the sizes of SmolLM2-135M",
        examples="next-token",
    ),
}
FAMILY = Family(
    "llama",
    llama_sizes,
    {
        "tgt_embedding.token": "embed_tokens",
        "decoder.norm": "norm",
        "generator": "lm_head",
        **layer_names("decoder.layers.{}", "layers.{}", _LLAMA),
    },
    "model.",
    {"n_decoder_layers": r"layers\.(\d+)\."},
    "embed_tokens.weight",
    ties_of(("embed_tokens.weight", "lm_head.weight"), default=False),
    ONE_MATRIX,
    r"layers\.\d+\.self_attn\.rotary_emb\.|lm_head\.weight$",
    model_types=("llama", "mistral", "qwen2", "qwen3"),
    presets=PRESETS,
)
