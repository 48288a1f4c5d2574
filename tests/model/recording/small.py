"""Any configuration of transformers made small, and what its models are called with: sizes by the
names of fields, inputs by those of forward's arguments."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import torch

V, LENGTH, TARGET, WIDTH, HEADS, LAYERS, IMAGE, PATCH = 97, 9, 6, 32, 4, 2, 32, 8
SIZES = {  # the first pattern that a field's whole name fits → its size
    r".*vocab_size(_per_.*)?|.*num_embeddings|.*vocab_size_.*": V,
    r".*key_value_heads|num_kv_heads|n_kv_heads|multi_query_group_num": 2,
    r".*(attention_heads|num_heads|n_heads?|_heads|num_attention_heads.*)": HEADS,
    r".*head_dim|d_kv|d_head|kv_channels|attention_head_size|.*head_size": WIDTH // HEADS,
    r".*lora_rank.*": 16,
    r".*(intermediate_size.*|ffn_dim|d_ff|n_inner|ffn_hidden_size|ffw.*|hidden_dim|mlp_dim)": 48,
    r".*(d_inner|feed_forward_size|ff_dim|moe_.*size|expert_.*size|ffn_.*size)": 48,
    r".*(num_hidden_layers|num_layers|n_layers?|encoder_layers|decoder_layers|_layers)": LAYERS,
    r".*(depth|num_blocks|num_hidden_groups|num_.*_blocks)": LAYERS,
    r".*(hidden_size|d_model|n_embd|embed_dim|embedding_size|embed_size|projection_dim)": WIDTH,
    r".*(hidden_dims?|dim|embedding_dim|emb_dim|width|d_embed)": WIDTH,
    r".*image_size|img_size|.*input_size": IMAGE,
    r".*patch_size": PATCH,
    r".*merge_size|tubelet_size": 2,
    r"num_mel_bins|n_mels|.*mel_bins|feature_size|input_feat.*": 16,
    r"frames_per_clip|.*num_frames": 4,
    r"num_.*experts|n_experts|n_routed_experts": 4,
    r"num_experts_per_tok.*|.*top_?k|moe_k|num_selected_experts|topk_.*|n_group": 1,
    r".*(max_position.*|n_positions|n_ctx|max_.*_positions|max_seq.*|seq_length)": 64,
    r"sliding_window|.*window_size|local_attention|attention_window.*": 4,
    r".*_(period|interval)|.*every_n_layers|.*_freq": 2,
    r"num_queries|num_query_tokens|.*num_latents|num_.*_tokens": 6,
}
KEPT = r".*(num_channels|num_labels|dropout|eps|theta|range|beta|type_vocab|feat_extract).*"
OF_HEADS = r".*head_dim|d_kv|d_head|kv_channels|.*head_size|.*lora_rank.*|.*_dim|.*rotary.*"
OF_IMAGES = r".*image_size|.*patch_size|.*merge_size|.*num_frames|.*mel_bins|.*window_size.*"
# What of a configuration is kept as it is, tried in turns: some sizes have to fit each other.
WAYS = (
    KEPT,
    f"{KEPT}|{OF_HEADS}",
    f"{KEPT}|.*key_value_heads|.*kv_heads|.*(period|interval|freq)",
    f"{KEPT}|{OF_HEADS}|{OF_IMAGES}|.*key_value_heads|.*kv_heads|.*(period|interval|freq)|.*hidden.*",
    f"{KEPT}|.*_layers|.*depths?",
    r"(?!.*(vocab_size|num_hidden_layers|num_layers|n_layers?|intermediate_size|experts)$).*",
    r"(?!.*vocab_size$).*",
)
UNSET = {"head_dim": WIDTH // HEADS, "vocab_size": V, "prediction_length": 8, "pad_token_id": 0}


def small(kind: type, kept: str = KEPT, given: Any = None) -> Any:
    """A configuration of this class, shrunk but for the fields `kept`; `given`: with what differs
    from the class's own."""
    given = kind() if given is None else given
    fields: dict[str, Any] = {}
    for name, value in vars(given).items():
        if name.startswith("_") or name in ("transformers_version", "id2label", "label2id"):
            continue
        if hasattr(value, "to_dict"):
            fields[name] = small(type(value), kept, value)
        elif (size := shrunk(name, value, kept)) is not value:
            fields[name] = size
    # Lists with an entry for each layer.
    layers = [len(v) for n, v in vars(given).items() if n == "layer_types" and isinstance(v, list)]
    for name, value in vars(given).items():
        is_for_each = isinstance(value, list | tuple) and layers and len(value) == layers[0]
        if is_for_each and not re.fullmatch(kept, "num_hidden_layers"):
            fields[name] = (
                [*dict.fromkeys(value)][:LAYERS] if name == "layer_types" else value[:LAYERS]
            )
            if len(fields[name]) < LAYERS:
                fields[name] = [*value[:LAYERS]]
    for names in (fields, {n: v for n, v in vars(given).items() if n not in fields}):
        for name, value in [*names.items()]:
            if name.endswith("token_id") and isinstance(value, int):
                fields[name] = min(value, V - 1) if value >= V else value
            elif (
                re.fullmatch(r".*token_(id|index)", name) and isinstance(value, int) and value >= V
            ):
                fields[name] = V - 1 - sum(map(ord, name)) % 20
            elif name.endswith("token_id") and isinstance(value, list):
                fields[name] = [min(each, V - 1) for each in value]
    return kind(**fields)


def shrunk(name: str, value: Any, kept: str) -> Any:
    if isinstance(value, bool) or re.fullmatch(kept, name):
        return value
    if value is None:
        return UNSET.get(name)
    for pattern, size in SIZES.items():
        if not re.fullmatch(pattern, name):
            continue
        if isinstance(value, int) and value > size:
            return size
        if isinstance(value, list | tuple) and value and all(type(v) is int for v in value):
            return type(value)(min(each, size) for each in value)
        return value
    return value


def ids(length: int, seed: int = 1) -> torch.Tensor:
    return torch.randint(3, 60, (1, length), generator=torch.Generator().manual_seed(seed))


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(2))


def inputs(model: torch.nn.Module) -> Iterator[dict]:
    """What a model may be called with, the likeliest first."""
    takes = inspect.signature(model.forward).parameters
    config: Any = model.config
    is_two = "decoder_input_ids" in takes and config.is_encoder_decoder
    text: dict[str, Any] = {"input_ids": ids(LENGTH)} if "input_ids" in takes else {}
    if "attention_mask" in takes and text:
        text["attention_mask"] = torch.ones_like(text["input_ids"])
    target = {"decoder_input_ids": ids(TARGET, 3)} if is_two else {}
    if text:
        yield text | target
        if "bbox" in takes:
            yield text | {"bbox": torch.zeros(1, LENGTH, 4, dtype=torch.long)}
    vision = getattr(config, "vision_config", None) or config
    size = getattr(vision, "image_size", IMAGE)
    size = (size, size) if isinstance(size, int) else tuple(size)
    channels = getattr(vision, "num_channels", 3)
    audio = getattr(config, "audio_config", None) or config
    mels = next((getattr(audio, n) for n in ("num_mel_bins", "n_mels", "feature_size")
                 if isinstance(getattr(audio, n, None), int)), 16)  # fmt: skip
    others = []
    if "pixel_values" in takes:
        others += [{"pixel_values": numbers(1, channels, *size)}]
        others += [{"pixel_values": numbers(1, 4, channels, *size)}]
    if "pixel_values_videos" in takes:
        others += [{"pixel_values_videos": numbers(1, 4, channels, *size)}]
    if "input_features" in takes:
        frames = 2 * getattr(audio, "max_source_positions", 32)
        others += [
            {"input_features": numbers(1, mels, frames)},
            {"input_features": numbers(1, 40, mels)},
        ]
    if "input_values" in takes:
        others += [{"input_values": numbers(1, 4000)}, {"input_values": numbers(1, 1, 4000)},
                   {"input_values": numbers(1, 64, mels)}]  # fmt: skip
    if "past_values" in takes:
        length, channels = (
            getattr(config, "context_length", 32),
            getattr(config, "num_input_channels", 1),
        )
        others += [{"past_values": numbers(1, length, channels)}]
    for name in ("speech", "audio_values", "waveform", "hidden_states", "inputs_embeds"):
        if name in takes:
            others += [{name: numbers(1, LENGTH, WIDTH)}, {name: numbers(1, 4000)}]
    for other in others:
        if not text or is_two:
            yield other | target
        yield text | target | other
