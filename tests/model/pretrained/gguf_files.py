"""Small GGUF files, written by the package gguf out of folders that transformers wrote, with the
rows of Llama's queries and keys in the order that llama.cpp has them in."""

import json
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

NAMES = {
    "embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}  # fmt: skip
EXACT = gguf.GGMLQuantizationType.F32


def theirs(name: str) -> str:
    parts = name.removeprefix("model.").split(".")
    layer = f"blk.{parts[1]}." if parts[0] == "layers" else ""
    inside = ".".join(parts[2:-1] if layer else parts[:-1])
    return f"{layer}{NAMES[inside]}.{parts[-1]}"


def permuted(numbers: np.ndarray, heads: int) -> np.ndarray:
    halves = numbers.reshape(heads, 2, -1, *numbers.shape[1:])
    return halves.swapaxes(1, 2).reshape(numbers.shape)


def to_gguf(folder: Path, file: Path, kind=EXACT, **metadata) -> Path:
    """A GGUF file of a folder; matrices as `kind`. `metadata` is added, or replaces what is there,
    names with __ for dots."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    arch = config["model_type"]
    heads, key_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    rope = config.get("rope_parameters") or {}
    values = {
        "vocab_size": config["vocab_size"],
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": heads,
        "attention.head_count_kv": key_heads,
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "rope.freq_base": float(rope.get("rope_theta", 10000.0)),
        "rope.dimension_count": head_dim,
    }
    if rope.get("rope_type") in ("linear", "yarn"):
        values["rope.scaling.type"] = rope["rope_type"]
        values["rope.scaling.factor"] = float(rope["factor"])
        values["rope.scaling.original_context_length"] = rope.get(
            "original_max_position_embeddings"
        )
    values = {f"{arch}.{name}": value for name, value in values.items()} | tokenizer(folder)
    values |= {name.replace("__", "."): value for name, value in metadata.items()}
    writer = gguf.GGUFWriter(file, arch)
    for name, value in values.items():
        if isinstance(value, list):
            writer.add_array(name, value)
        elif value is not None:
            {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32,
             str: writer.add_string}[type(value)](name, value)  # fmt: skip
    for name, numbers in load_file(folder / "model.safetensors").items():
        turned = {"q_proj": heads, "k_proj": key_heads}.get(name.split(".")[-2])
        if turned and arch == "llama":
            numbers = permuted(numbers, turned)
        of = kind if numbers.ndim == 2 else EXACT
        numbers = gguf.quants.quantize(np.ascontiguousarray(numbers), of)
        writer.add_tensor(theirs(name), numbers, raw_dtype=of)
    if rope.get("rope_type") == "llama3":
        frequencies, _ = ROPE_INIT_FUNCTIONS["llama3"](LlamaConfig(**config), "cpu")
        plain = values[f"{arch}.rope.freq_base"] ** (-np.arange(0, head_dim, 2) / head_dim)
        factors = (plain / frequencies.numpy()).astype(np.float32)
        writer.add_tensor("rope_freqs.weight", factors)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def tokenizer(folder: Path) -> dict:
    """The metadata of a folder's tokenizer.json."""
    values = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    ids = values["model"]["vocab"]
    special = {token["id"] for token in values["added_tokens"]}
    tokens = sorted(ids, key=ids.get)
    kinds = [
        gguf.TokenType.CONTROL if i in special
        else gguf.TokenType.BYTE if token.startswith("<0x") else gguf.TokenType.NORMAL
        for i, token in enumerate(tokens)
    ]  # fmt: skip
    merges = [" ".join(pair) for pair in values["model"]["merges"]]
    found = {"tokens": tokens, "token_type": [int(kind) for kind in kinds]}
    if values["model"].get("byte_fallback"):
        rank = {pair.replace(" ", ""): i for i, pair in reversed(list(enumerate(merges)))}
        scores = [-1.0 - rank.get(token, len(rank)) for token in tokens]
        found |= {"model": "llama", "scores": scores, "unknown_token_id": 0, "bos_token_id": 1,
                  "eos_token_id": 2, "padding_token_id": 3, "add_bos_token": True}  # fmt: skip
    else:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        pre = "qwen2" if config["model_type"].startswith("qwen") else "gpt-2"
        found |= {"model": "gpt2", "pre": pre, "merges": merges, "eos_token_id": 0,
                  "bos_token_id": 0}  # fmt: skip
    return {f"tokenizer.ggml.{name}": value for name, value in found.items()}
