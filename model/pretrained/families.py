"""The families of other people's models: what a Hugging Face config.json says of their sizes, and
what our parameters are called in their files."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from model.families.rotary import EACH_PAIR, NEEDED
from model.pretrained.weights import CannotLoad, Stored, Weights

# Their names of activations → ours.
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
MOST_POSITIONS = 2**16  # of a table that is computed


class Described:
    """What a file says of its model, mostly a config.json; `said_by` is what to call it. Numbers
    are checked as they are read. Raises CannotLoad."""

    def __init__(self, values: Mapping[str, object], where: str, said_by: str = "config.json"):
        self.values, self.where, self.said_by = values, where, said_by

    def count(self, *names: str, default: int | None = None) -> int:
        """A whole number, at least 1, under the first of the names that there is."""
        value = next((self.values[n] for n in names if self.values.get(n) is not None), default)
        if type(value) is not int or value < 1:
            said = "lacks" if value is None else f"has {value!r} for"
            raise CannotLoad(f"{self.where} {said} {names[0]}: a whole number from 1 is needed.")
        return value

    def number(self, name: str, default: float) -> float:
        value = self.values.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise CannotLoad(f"{self.where} has {value!r} for {name}: a number is needed.")
        return float(value)

    def numbers(self, name: str) -> tuple[float, ...]:
        """A list of numbers above zero."""
        values = self.values.get(name)
        right = isinstance(values, list) and all(
            type(value) in (int, float) and value > 0 for value in values
        )
        if not values or not right:
            raise CannotLoad(f"{self.where} has no list of numbers above zero for {name}.")
        return tuple(map(float, values))

    def flag(self, name: str, default: bool = False) -> bool:
        return bool(self.values.get(name, default))

    def token(self, name: str) -> int:
        """The id of a special token, the first of several; -1: there is none."""
        value = self.values.get(name)
        value = value[0] if isinstance(value, list) and value else value
        return value if type(value) is int and value >= 0 else -1

    def activation(self, name: str, default: str) -> str:
        theirs = self.values.get(name) or default
        if theirs not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise CannotLoad(f"{self.where} has the activation {theirs!r}; known are {known}.")
        return ACTIVATIONS[theirs]

    def refuse(self, name: str, *usual: object) -> None:
        """Raises where the config says something that our classes have no part for."""
        if self.values.get(name, usual[0]) not in usual:
            raise CannotLoad(
                f"{self.where} has {self.values[name]!r} for {name}, which no part here can do."
            )


Sizes = dict[str, object]


@dataclass(frozen=True)
class Family:
    """sizes: config and weights → fields of the preset's Config, without the special tokens.
    names: our module, or parameter, → theirs, {} for the number of a layer. prefix: what may stand
    before their names. layers: field of Config → pattern of a layer's names. embedding: name of the
    token embeddings. aliases: other names of a shared matrix. ignored: pattern of weights that are
    of no use here. first: the number of the first layer."""

    preset: str
    sizes: Callable[[Described, Weights], Sizes]
    names: Mapping[str, str | Stored]
    prefix: str
    layers: Mapping[str, str]
    embedding: str
    aliases: Mapping[str, tuple[str, ...]]
    ignored: str = r"(?!)"
    first: int = 0

    def stored(self, ours: str, plain: Mapping[str, str]) -> Stored:
        """Where a parameter of ours is, among weights under their `plain` names."""
        numbers = [int(number) + self.first for number in re.findall(r"\.(\d+)\.", ours)]
        template = re.sub(r"\.\d+\.", ".{}.", ours)
        module, _, leaf = template.rpartition(".")
        place = self.names.get(template)
        if place is None:
            place = self.names[module]
            place = Stored(place) if isinstance(place, str) else place
            place = replace(place, name=f"{place.name}.{leaf}")
        place = Stored(place) if isinstance(place, str) else place
        theirs = place.name.format(*numbers)
        names = (theirs, *self.aliases.get(theirs, ()))
        name = next((plain[name] for name in names if name in plain), self.prefix + theirs)
        # A bias has no axis of inputs.
        return replace(place, name=name, transposed=place.transposed and leaf == "weight")


def bert_sizes(config: Described, weights: Weights) -> Sizes:
    config.refuse("is_decoder", False)
    config.refuse("position_embedding_type", "absolute", None)
    head = "cls.predictions.transform.dense.weight" in weights.shapes
    return dict(
        vocab_size=config.count("vocab_size"),
        d_model=config.count("hidden_size"),
        n_heads=config.count("num_attention_heads"),
        d_ff=config.count("intermediate_size"),
        n_encoder_layers=config.count("num_hidden_layers"),
        max_length=config.count("max_position_embeddings"),
        n_segments=config.count("type_vocab_size", default=2),
        norm_eps=config.number("layer_norm_eps", 1e-12),
        activation=config.activation("hidden_act", "gelu"),
        predicts="masked token" if head else "embedding",
        tied=config.flag("tie_word_embeddings", True),
    )


def gpt2_sizes(config: Described, weights: Weights) -> Sizes:
    for name, usual in (
        ("scale_attn_weights", True),
        ("scale_attn_by_inverse_layer_idx", False),
        ("add_cross_attention", False),
    ):
        config.refuse(name, usual)
    d_model = config.count("n_embd", "hidden_size")
    return dict(
        vocab_size=config.count("vocab_size"),
        d_model=d_model,
        n_heads=config.count("n_head", "num_attention_heads"),
        d_ff=config.count("n_inner", default=4 * d_model),
        n_decoder_layers=config.count("n_layer", "num_hidden_layers"),
        max_length=config.count("n_positions", "max_position_embeddings"),
        norm_eps=config.number("layer_norm_epsilon", 1e-5),
        activation=config.activation("activation_function", "gelu_new"),
        tied=config.flag("tie_word_embeddings", True),
    )


def llama_sizes(config: Described, weights: Weights) -> Sizes:
    """Llama, Mistral, Qwen2 and Qwen3."""
    kind = config.values["model_type"]
    n_heads, length = config.count("num_attention_heads"), config.count("max_position_embeddings")
    bias = kind == "qwen2" or config.flag("attention_bias")
    rotary = _rotary(config, length)
    if rotary["rotary_rule"] == "dynamic":
        length = int(length * dict(rotary["rotary_settings"])["factor"])
    window = config.values.get("sliding_window", 4096 if kind == "mistral" else None)
    if window and (kind == "mistral" or config.flag("use_sliding_window")):
        # Within its window such a model attends to all that came before, as any other.
        length = min(length, config.count("sliding_window", default=4096))
    return rotary | dict(
        vocab_size=config.count("vocab_size"),
        d_model=config.count("hidden_size"),
        n_heads=n_heads,
        n_key_heads=config.count("num_key_value_heads", default=n_heads),
        head_size=config.count("head_dim", default=128 if kind == "qwen3" else None)
        if config.values.get("head_dim") or kind == "qwen3"
        else 0,
        d_ff=config.count("intermediate_size"),
        n_decoder_layers=config.count("num_hidden_layers"),
        max_length=length,
        norm_eps=config.number("rms_norm_eps", 1e-6),
        activation=config.activation("hidden_act", "silu"),
        query_bias=bias,
        output_bias=bias and kind != "qwen2",
        forward_bias=config.flag("mlp_bias"),
        normed_heads=kind == "qwen3",
        tied=config.flag("tie_word_embeddings"),
        dropout=0.0,
    )


def _rotary(config: Described, length: int) -> Sizes:
    """The fields rotary_*, from any of the places where configs have had them."""
    given = config.values.get("rope_parameters") or config.values.get("rope_scaling") or {}
    if not isinstance(given, dict):
        raise CannotLoad(f"{config.where} has {given!r} for its rotary positions.")
    inside = Described(given, config.where)
    inside.refuse("partial_rotary_factor", 1.0, 1, None)
    config.refuse("partial_rotary_factor", 1.0, 1, None)
    rule = given.get("rope_type") or given.get("type") or "default"
    if rule not in NEEDED:
        raise CannotLoad(
            f"{config.where} has the rotary rule {rule!r}; known are {', '.join(NEEDED)}."
        )
    settings = {
        name: value
        for name, value in given.items()
        if isinstance(value, int | float) and name != "rope_theta"
    }
    first = inside.count("original_max_position_embeddings", default=length)
    if "original_max_position_embeddings" in config.values:
        first = config.count("original_max_position_embeddings", default=first)
    if rule == "longrope":
        settings |= {name: inside.numbers(name) for name in EACH_PAIR}
        settings.setdefault("factor", length / first)
    if missing := [name for name in NEEDED[rule] if not settings.get(name)]:
        raise CannotLoad(f"{config.where}: the rotary rule {rule!r} needs {', '.join(missing)}.")
    return dict(
        rotary_base=inside.number("rope_theta", config.number("rope_theta", 10000.0)),
        rotary_rule=rule,
        rotary_settings=tuple(settings.items()),
        rotary_length=length if rule == "dynamic" else first,
    )


def marian_sizes(config: Described, weights: Weights) -> Sizes:
    for name in ("normalize_before", "normalize_embedding", "add_final_layer_norm"):
        config.refuse(name, False)
    sizes = dict(
        vocab_size=config.count("vocab_size"),
        tgt_vocab_size=config.count("decoder_vocab_size", default=config.count("vocab_size")),
        d_model=config.count("d_model"),
        n_heads=config.count("encoder_attention_heads"),
        d_ff=config.count("encoder_ffn_dim"),
        n_encoder_layers=config.count("encoder_layers"),
        n_decoder_layers=config.count("decoder_layers"),
        max_length=config.count("max_position_embeddings"),
        activation=config.activation("activation_function", "gelu"),
        scaled=config.flag("scale_embedding"),
        shared=config.flag("share_encoder_decoder_embeddings", True),
        tied=config.flag("tie_word_embeddings", True),
    )
    for ours, theirs in (("n_heads", "decoder_attention_heads"), ("d_ff", "decoder_ffn_dim")):
        config.refuse(theirs, sizes[ours])
    if sizes["max_length"] > MOST_POSITIONS:
        raise CannotLoad(
            f"{config.where} has {sizes['max_length']:,} for max_position_embeddings; at most "
            f"{MOST_POSITIONS:,} are read."
        )
    return sizes


def _layer(ours: str, theirs: str, names: Mapping[str, str]) -> dict[str, str]:
    """The names of a layer's modules."""
    return {f"{ours}.{name}": f"{theirs}.{their}" for name, their in names.items()}


def _gpt2_projections() -> dict[str, Stored]:
    return {
        f"decoder.layers.{{}}.self_attn.{name}": Stored("h.{}.attn.c_attn", True, part, 3)
        for part, name in enumerate(("query", "key", "value"))
    }


_MARIAN_ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
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


def _marian_layers(stack: str, attentions: Mapping[str, str], norms: tuple[str, ...]):
    names = {
        f"{ours}.{part}": f"{theirs}.{their}"
        for ours, theirs in attentions.items()
        for part, their in _MARIAN_ATTENTION.items()
    }
    names |= {f"norm{i}": norm for i, norm in enumerate(norms, start=1)}
    names |= {"feed_forward.linear1": "fc1", "feed_forward.linear2": "fc2"}
    return _layer(f"{stack}.layers.{{}}", f"{stack}.layers.{{}}", names)


BERT = Family(
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
        **_layer(
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
    {
        "embeddings.word_embeddings.weight": ("cls.predictions.decoder.weight",),
        "cls.predictions.decoder.bias": ("cls.predictions.bias",),
    },
    r"pooler\.|cls\.seq_relationship\.|cls\.predictions\.(decoder\.|bias$)|classifier\.",
)
GPT2 = Family(
    "gpt2",
    gpt2_sizes,
    {
        "tgt_embedding.token": "wte",
        "tgt_embedding.position": "wpe",
        "decoder.norm": "ln_f",
        "generator": "lm_head",
        **_gpt2_projections(),
        "decoder.layers.{}.self_attn.output": Stored("h.{}.attn.c_proj", True),
        "decoder.layers.{}.feed_forward.linear1": Stored("h.{}.mlp.c_fc", True),
        "decoder.layers.{}.feed_forward.linear2": Stored("h.{}.mlp.c_proj", True),
        "decoder.layers.{}.norm1": "h.{}.ln_1",
        "decoder.layers.{}.norm2": "h.{}.ln_2",
    },
    "transformer.",
    {"n_decoder_layers": r"h\.(\d+)\."},
    "wte.weight",
    {"wte.weight": ("lm_head.weight",)},
    r"h\.\d+\.attn\.(masked_)?bias$|lm_head\.",
)
LLAMA = Family(
    "llama",
    llama_sizes,
    {
        "tgt_embedding.token": "embed_tokens",
        "decoder.norm": "norm",
        "generator": "lm_head",
        **_layer("decoder.layers.{}", "layers.{}", _LLAMA),
    },
    "model.",
    {"n_decoder_layers": r"layers\.(\d+)\."},
    "embed_tokens.weight",
    {"embed_tokens.weight": ("lm_head.weight",)},
    r"layers\.\d+\.self_attn\.rotary_emb\.",
)
SHARED = ("shared.weight", "decoder.embed_tokens.weight", "lm_head.weight")
MARIAN = Family(
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
    {
        "encoder.embed_tokens.weight": SHARED,
        "decoder.embed_tokens.weight": SHARED,
    },
    r"(encoder|decoder)\.embed_positions\.|lm_head\.|(encoder|decoder)\.embed_tokens\.|shared\.",
)
FAMILIES = {  # model_type → family
    "bert": BERT,
    "gpt2": GPT2,
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen2": LLAMA,
    "qwen3": LLAMA,
    "marian": MARIAN,
}
