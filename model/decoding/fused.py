"""One decoding step in as few operations as possible. For speed only: without this file decoding
gives the same result in 1.6 times the time (0.55 of Marian's in place of 0.34, measured by
tests/bench/bench_decoding.py).

At one token per step, calls cost more than arithmetic. Here query, key and value are one product,
scales are folded into weights, all layers share one cache, and the beams of a sentence read its
memory together. The result is that of the decoder's modules, which hooks need: where there is a
hook, or a part that this file does not know, decoding goes through the modules.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, linear, scaled_dot_product_attention

from headlight.model.decoding.cache import one_by_one_embedding
from headlight.model.masks import Masks
from headlight.model.transformer import (
    DecoderLayer,
    FeedForward,
    MultiHeadAttention,
    Scores,
    Transformer,
)
from headlight.model.variants import PreNormDecoderLayer

KNOWN = (DecoderLayer, PreNormDecoderLayer, MultiHeadAttention, Scores, FeedForward, nn.LayerNorm)


def fits(model: Transformer) -> bool:
    """Whether the decoder is made of parts known here, without hooks, and not in training."""
    decoder = model.decoder
    parts = [decoder.norm, *decoder.layers]
    if not all(type(part) in (*KNOWN, nn.Identity) for part in parts):
        return False
    for layer in decoder.layers:
        parts += [*layer.children(), layer.self_attn.scores, layer.cross_attn.scores]
    return not decoder.training and all(
        type(part) in (*KNOWN, nn.Dropout, nn.Identity) for part in parts
    ) and not any(m._forward_hooks or m._forward_pre_hooks for m in decoder.modules())  # fmt: skip


class FusedSteps:
    """As decoding.Steps, for a decoder that `fits`; always with a cache."""

    def __init__(self, model: Transformer, src: Tensor, masks: Masks, capacity: int, beam: int):
        config = model.config
        src_mask, _, memory_mask, *_ = masks.build(model, src, src)
        memory = model.encode(src, src_mask)
        self.model, self.beam, self.length = model, beam, 0
        self.embedding = one_by_one_embedding(model)
        self.memory_mask = memory_mask
        self.layers = [_Layer(layer, memory) for layer in model.decoder.layers]
        # (layer, step, row, query and key and value)
        self.cache = memory.new_empty(
            len(self.layers), capacity, len(src) * beam, 3 * config.d_model
        )

    def __call__(self, tgt: Tensor) -> Tensor:
        step, self.length = self.length, self.length + 1
        x = self.embedding(tgt[:, step:])[:, 0]
        for layer, cache in zip(self.layers, self.cache, strict=True):
            x = layer(x, cache, step, self.beam, self.memory_mask)
        return self.model.generator(self.model.decoder.norm(x))

    def reorder(self, rows: Tensor) -> None:
        self.cache[:, : self.length] = self.cache[:, : self.length, rows]

    def keep(self, sentences: Tensor) -> None:
        beams = torch.arange(self.beam, device=sentences.device)
        rows = (sentences[:, None] * self.beam + beams).flatten()
        self.cache = self.cache[:, :, rows]
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask[sentences]
        for layer in self.layers:
            layer.memory = tuple(part[sentences] for part in layer.memory)


class _Layer:
    """A decoder layer's step, on (row, d_model)."""

    def __init__(self, layer: DecoderLayer, memory: Tensor):
        attention, cross, forward = layer.self_attn, layer.cross_attn, layer.feed_forward
        query, parts = attention.query, (attention.key, attention.value)
        self.n_heads = attention.n_heads
        scale = (query.out_features // attention.n_heads) ** -0.5  # folded into the queries
        self.projections = (
            torch.cat([query.bias * scale, *(part.bias for part in parts)]),
            torch.cat([query.weight * scale, *(part.weight for part in parts)]).T.contiguous(),
        )
        self.output = attention.output.weight, attention.output.bias
        self.cross_query = cross.query.weight * scale, cross.query.bias * scale
        self.cross_output = cross.output.weight, cross.output.bias
        key, value = cross.keys_values(memory, memory)
        self.memory = key.contiguous(), value.contiguous()
        self.linear1 = forward.linear1.weight, forward.linear1.bias
        self.linear2 = forward.linear2.weight, forward.linear2.bias
        self.norms = [
            (norm.normalized_shape, norm.weight, norm.bias, norm.eps)
            for norm in (layer.norm1, layer.norm2, layer.norm3)
        ]
        self.norm_first = isinstance(layer, PreNormDecoderLayer)

    def __call__(self, x: Tensor, cache: Tensor, step: int, beam: int, mask) -> Tensor:
        norm1, norm2, norm3 = self.norms
        if self.norm_first:
            x = x + self.attend(layer_norm(x, *norm1), cache, step)
            x = x + self.attend_memory(layer_norm(x, *norm2), beam, mask)
            return x + self.feed(layer_norm(x, *norm3))
        x = layer_norm(x + self.attend(x, cache, step), *norm1)
        x = layer_norm(x + self.attend_memory(x, beam, mask), *norm2)
        return layer_norm(x + self.feed(x), *norm3)

    def attend(self, x: Tensor, cache: Tensor, step: int) -> Tensor:
        bias, weight = self.projections
        torch.addmm(bias, x, weight, out=cache[step])
        # each (row, heads, step, d_head)
        projected = cache[: step + 1].view(step + 1, len(x), 3, self.n_heads, -1)
        query, key, value = projected.permute(2, 1, 3, 0, 4)
        heads = scaled_dot_product_attention(query[:, :, step:], key, value, scale=1.0)
        return linear(heads.reshape(len(x), -1), *self.output)

    def attend_memory(self, x: Tensor, beam: int, mask: Tensor | None) -> Tensor:
        key, value = self.memory
        # Beams of one sentence are several queries to it: (sentence, heads, beam, d_head).
        query = linear(x, *self.cross_query).view(len(key), beam, self.n_heads, -1).transpose(1, 2)
        heads = scaled_dot_product_attention(query, key, value, mask, scale=1.0)
        return linear(heads.transpose(1, 2).reshape(len(x), -1), *self.cross_output)

    def feed(self, x: Tensor) -> Tensor:
        return linear(linear(x, *self.linear1).relu_(), *self.linear2)
