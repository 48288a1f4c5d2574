"""GPT-2 (Radford et al. 2019): a pre-norm decoder alone with learned positions and GELU."""

from dataclasses import dataclass

from torch import nn

from headlight.model.families.family import (
    ACTIVATION_NAMES,
    EPSILON,
    ONE_MATRIX,
    Family,
    Preset,
    Shapes,
    Sizes,
    Stored,
    ties_of,
)
from headlight.model.families.parts import ActivatedFeedForward
from headlight.model.families.values import Described
from headlight.model.sites import LayerList
from headlight.model.transformer import Embedding
from headlight.model.variants import (
    DecoderOnly,
    DecoderOnlyConfig,
    LearnedPositions,
    PreNormEncoderLayer,
)


@dataclass(frozen=True)
class GPT2Config(DecoderOnlyConfig):
    """Sizes of a GPT-2. `norm_eps`: of its LayerNorms; `activation`: of its feed-forwards; `tied`:
    whether embeddings and output share their matrix."""

    norm_eps: float = 1e-5
    activation: str = "gelu_tanh"
    tied: bool = True
    special_tokens: tuple[str, ...] = ("<pad>", "<|endoftext|>", "<|endoftext|>")


class UnscaledEmbedding(Embedding):
    """Token embedding as it is + positions, whatever they are."""

    def __init__(self, config: DecoderOnlyConfig, positions: nn.Module):
        nn.Module.__init__(self)  # no table of sinusoids: it may be a large one
        self.token = nn.Embedding(config.vocab_size, config.d_model)
        self.position = positions
        self.dropout = nn.Dropout(config.dropout)


def gpt2(config: GPT2Config) -> DecoderOnly:
    """GPT-2: norm before each sublayer and behind the last, GELU by tanh, learned positions; one
    matrix for embeddings and output (Radford et al. 2019, section 2.3)."""
    model = DecoderOnly(config)
    positions = LearnedPositions(config.max_length, config.d_model)
    model.tgt_embedding = UnscaledEmbedding(config, positions)
    model.generator = nn.Linear(config.d_model, config.vocab_size, bias=False)
    if config.tied:
        model.generator.weight = model.tgt_embedding.token.weight
    model.decoder.layers = LayerList(PreNormEncoderLayer(config) for _ in model.decoder.layers)
    for layer in model.decoder.layers:
        layer.feed_forward = ActivatedFeedForward(config.d_model, config.d_ff, config.activation)
        layer.norm1, layer.norm2 = (nn.LayerNorm(config.d_model, config.norm_eps) for _ in range(2))
    model.decoder.norm = nn.LayerNorm(config.d_model, config.norm_eps)
    return model


def gpt2_sizes(config: Described, weights: Shapes) -> Sizes:
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
        activation=ACTIVATION_NAMES[
            config.choice("activation_function", ACTIVATION_NAMES, "gelu_new")
        ],
    )


def _gpt2_projections() -> dict[str, Stored]:
    return {
        f"decoder.layers.{{}}.self_attn.{name}": Stored("h.{}.attn.c_attn", True, part, 3)
        for part, name in enumerate(("query", "key", "value"))
    }


PRESETS = {
    "gpt2": Preset(
        "GPT-2 (Radford et al. 2019)",
        gpt2,
        GPT2Config,
        "decoder only, pre-norm with a final norm, learned positions, GELU, no √d_model",
        dict(vocab_size=50257),
        dict(d_model=768, n_heads=12, d_ff=3072, n_decoder_layers=12, max_length=1024),
        "the sizes of the smallest GPT-2",
        examples="next-token",
    ),
}
FAMILY = Family(
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
    ties_of(("wte.weight", "lm_head.weight"), default=True),
    ONE_MATRIX,
    r"h\.\d+\.attn\.(masked_)?bias$|lm_head\.weight$",
    model_types=("gpt2",),
    presets=PRESETS,
)
