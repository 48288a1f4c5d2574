"""The families of other people's models: what a Hugging Face config.json says of their sizes, and
what our parameters are called in their files."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from headlight.model.families.rotary import EACH_PAIR, NEEDED
from headlight.model.pretrained.values import LONGEST, Described
from headlight.model.pretrained.weights import CannotLoad, Stored, WeightFile

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
WINDOW = 4096  # tokens, where a model with a sliding window does not say how long it is
# Least and most of what numbers are.
EPSILON = 0.0, 1.0
BASE = 2.0, 1e12
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


Sizes = dict[str, object]
Ties = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Family:
    """sizes: config and weights → fields of the preset's Config, without the special tokens.
    names: our module, or parameter, → theirs, {} for the number of a layer. prefix: what may stand
    before their names. layers: field of Config → pattern of a layer's names. embedding: name of the
    token embeddings. ties: config → groups of their weights that share a tensor. one_matrix: field
    of Config → two of our parameters that are one where it is true. ignored: pattern of weights
    that may be there and are not used. first: the number of the first layer."""

    preset: str
    sizes: Callable[[Described, WeightFile], Sizes]
    names: Mapping[str, str | Stored]
    prefix: str
    layers: Mapping[str, str]
    embedding: str
    ties: Callable[[Described], Ties] = lambda config: ()
    one_matrix: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    ignored: str = r"(?!)"
    first: int = 0

    def has(self, theirs: str) -> bool:
        """Whether its models have a parameter of this name, without the prefix."""
        template = re.sub(r"(?<=\.)\d+(?=\.)", "{}", theirs)
        names = {
            place.name if isinstance(place, Stored) else place for place in self.names.values()
        }
        return not names.isdisjoint((template, template.rpartition(".")[0]))

    def stored(self, ours: str, plain: Mapping[str, str]) -> Stored:
        """Where a parameter of ours is, among weights under their `plain` names."""
        numbers = [int(number) + self.first for number in re.findall(r"\.(\d+)\.", ours)]
        template = re.sub(r"\.\d+\.", ".{}.", ours)
        module, _, leaf = template.rpartition(".")
        place = self.names.get(template)
        if place is None:
            place = self.names.get(ours.rpartition(".")[0]) or self.names[module]
            place = Stored(place) if isinstance(place, str) else place
            place = replace(place, name=f"{place.name}.{leaf}")
        place = Stored(place) if isinstance(place, str) else place
        theirs = place.name.format(*numbers)
        name = plain.get(theirs, theirs)
        # A bias has no axis of inputs.
        return replace(place, name=name, transposed=place.transposed and leaf == "weight")


def tied(weights: WeightFile, groups: Ties, plain: Mapping[str, str]) -> dict[str, str]:
    """`plain` with the tensor that each weight of a group has: its own if one is stored that
    differs, else the group's, which is the first that is stored. So does transformers 5."""
    shared = dict(plain)
    for group in groups:
        stored = [plain[name] for name in group if name in plain]
        for name in group if stored else ():
            own = plain.get(name, stored[0])
            if own == stored[0] or weights.equal(own, stored[0]):
                shared[name] = stored[0]
    return shared


def bert_sizes(config: Described, weights: WeightFile) -> Sizes:
    config.refuse("is_decoder", False)
    config.refuse("position_embedding_type", "absolute", None)
    head = any(name.startswith("cls.") for name in weights.shapes)
    head |= "BertForMaskedLM" in (config.values.get("architectures") or ())
    return dict(
        vocab_size=config.count("vocab_size"),
        d_model=config.count("hidden_size"),
        n_heads=config.count("num_attention_heads"),
        d_ff=config.count("intermediate_size"),
        n_encoder_layers=config.count("num_hidden_layers"),
        max_length=config.count("max_position_embeddings"),
        n_segments=config.count("type_vocab_size", default=2),
        norm_eps=config.number("layer_norm_eps", 1e-12, *EPSILON),
        activation=ACTIVATIONS[config.choice("hidden_act", ACTIVATIONS, "gelu")],
        predicts="masked token" if head else "embedding",
    )


def gpt2_sizes(config: Described, weights: WeightFile) -> Sizes:
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
        norm_eps=config.number("layer_norm_epsilon", 1e-5, *EPSILON),
        activation=ACTIVATIONS[config.choice("activation_function", ACTIVATIONS, "gelu_new")],
    )


def llama_sizes(config: Described, weights: WeightFile) -> Sizes:
    """Llama, Mistral, Qwen2 and Qwen3."""
    kind = config.values["model_type"]
    n_heads = config.count("num_attention_heads")
    length = config.count("max_position_embeddings", most=LONGEST)
    bias = kind == "qwen2" or config.flag("attention_bias")
    rotary = _rotary(config, length)
    if rotary["rotary_rule"] == "dynamic":
        length = min(int(length * dict(rotary["rotary_settings"])["factor"]), LONGEST)
    slides = kind == "mistral" or (kind != "llama" and config.flag("use_sliding_window"))
    if slides and config.values.get("sliding_window", WINDOW):
        # Within its window such a model attends to all that came before, as any other.
        length = min(length, config.count("sliding_window", default=WINDOW))
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
        activation=ACTIVATIONS[config.choice("hidden_act", ACTIVATIONS, "silu")],
        query_bias=bias,
        output_bias=bias and kind != "qwen2",
        forward_bias=config.flag("mlp_bias"),
        normed_heads=kind == "qwen3",
        dropout=0.0,
    )


def _rotary(config: Described, length: int) -> Sizes:
    """The fields rotary_*, from any of the places where configs have had them."""
    places = (config.inside(name) for name in ("rope_parameters", "rope_scaling"))
    given = next((place for place in places if place.values), Described({}, config.where))
    for values in (given, config):
        values.refuse("partial_rotary_factor", 1.0, 1, None)
    place = "type" if given.values.get("rope_type") is None else "rope_type"
    rule = given.choice(place, NEEDED, "default")
    settings: dict[str, object] = {
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


def marian_sizes(config: Described, weights: WeightFile) -> Sizes:
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
        max_length=config.count("max_position_embeddings", most=MOST_POSITIONS),
        activation=ACTIVATIONS[config.choice("activation_function", ACTIVATIONS, "gelu")],
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


def _ties(*groups: tuple[str, ...], default: bool) -> Callable[[Described], Ties]:
    return lambda config: groups if config.flag("tie_word_embeddings", default) else ()


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


ONE_MATRIX = {"tied": ("tgt_embedding.token.weight", "generator.weight")}
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
    _ties(
        ("embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"),
        ("cls.predictions.bias", "cls.predictions.decoder.bias"),
        default=True,
    ),
    {"tied": ("src_embedding.token.weight", "generator.output.weight")},
    r"pooler\.dense\.|cls\.(seq_relationship|predictions\.(transform\.)?\w+)\.|cls\.predictions\.bias$",
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
    _ties(("wte.weight", "lm_head.weight"), default=True),
    ONE_MATRIX,
    r"h\.\d+\.attn\.(masked_)?bias$|lm_head\.weight$",
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
    _ties(("embed_tokens.weight", "lm_head.weight"), default=False),
    ONE_MATRIX,
    r"layers\.\d+\.self_attn\.rotary_emb\.|lm_head\.weight$",
)
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
    marian_ties,
    ONE_MATRIX | {"shared": ("src_embedding.token.weight", "tgt_embedding.token.weight")},
    r"(encoder|decoder)\.embed_(positions|tokens)\.weight$|(shared|lm_head)\.weight$",
)
FAMILY_OF_MODEL_TYPE = {  # model_type → family
    "bert": BERT,
    "gpt2": GPT2,
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen2": LLAMA,
    "qwen3": LLAMA,
    "marian": MARIAN,
}
