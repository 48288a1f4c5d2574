"""From source ids to target ids: greedy search with a key-value cache."""

from collections.abc import Sequence

import torch
from torch import Tensor

from model.masks import Masks
from model.transformer import MultiHeadAttention, Transformer


class SelfCache:
    """Keys and values of one decoder self-attention, one row longer at each step."""

    def __init__(self):
        self.keys = self.values = None

    def __call__(self, attention: MultiHeadAttention, key: Tensor, value: Tensor):
        k, v = attention.keys_values(key, value)
        if self.keys is not None:
            k, v = torch.cat([self.keys, k], dim=2), torch.cat([self.values, v], dim=2)
        self.keys, self.values = k, v
        return k, v


class CrossCache:
    """Keys and values of one cross-attention, projected from memory once."""

    def __init__(self):
        self.held = None

    def __call__(self, attention: MultiHeadAttention, key: Tensor, value: Tensor):
        if self.held is None:
            self.held = attention.keys_values(key, value)
        return self.held


def longest(config, src_length: int) -> int:
    """How many tokens a translation may have: generous, and within what the model reads."""
    return min(2 * src_length + 20, config.max_length - 1)


@torch.no_grad()
def greedy_decode(
    model: Transformer,
    src: Tensor,
    max_length: int | None = None,
    masks: Masks = Masks(),
    use_cache: bool = True,
) -> list[list[int]]:
    """The most probable next token, again and again, until eos: (batch, src) → ids, without
    bos and eos, one list a sentence.

    The cache is causal by construction; without the causal mask, pass `use_cache=False`.
    """
    if use_cache and not masks.causal:
        raise ValueError("a key-value cache needs the causal mask")
    config = model.config
    max_length = longest(config, src.shape[1]) if max_length is None else max_length
    tgt = src.new_full((len(src), 1), config.bos_id)
    src_mask, _, memory_mask = masks.build(src, tgt, config.pad_id)
    memory = model.encode(src, src_mask)
    cache = [(SelfCache(), CrossCache()) for _ in model.decoder.layers] if use_cache else None
    done = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for step in range(max_length):
        if use_cache:
            hidden = model.decode(tgt[:, -1:], memory, None, memory_mask, cache, start=step)
        else:
            _, tgt_mask, _ = masks.build(src, tgt, config.pad_id)
            hidden = model.decode(tgt, memory, tgt_mask, memory_mask)
        best = model.generator(hidden[:, -1]).argmax(dim=-1)
        best = best.masked_fill(done, config.pad_id)
        tgt = torch.cat([tgt, best[:, None]], dim=1)
        done |= best == config.eos_id
        if done.all():
            break
    return [_until_end(ids, config) for ids in tgt[:, 1:].tolist()]


def _until_end(ids: Sequence[int], config) -> list[int]:
    return list(ids[: ids.index(config.eos_id)]) if config.eos_id in ids else list(ids)
