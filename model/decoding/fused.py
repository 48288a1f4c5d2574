"""One decoding step in as few operations as possible. For speed only: without this file decoding
gives the same result in twice the time (0.54 of Marian's in place of 0.26, measured by
tests/bench/bench_decoding.py).

At one token per step, calls cost more than arithmetic. Here query, key and value are one product,
scales are folded into weights, all layers share one cache, and the beams of a sentence read its
memory together. The result is that of the paper's layers, or of the same with their norms first.
Where any part is another one, or has a hook, decoding goes through the modules.
"""

from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, linear, scaled_dot_product_attention

from headlight.model.decoding.cache import one_by_one_embedding
from headlight.model.masks import Masks
from headlight.model.transformer import Config, Decoder, DecoderLayer, Transformer
from headlight.model.variants import PreNormDecoderLayer

LAYERS = (DecoderLayer, PreNormDecoderLayer)


def fits(model: Transformer) -> bool:
    """Whether every part of the decoder's layers is the one that is built there, not in training,
    nothing stands around it, and each token may attend to all before it. What holds the layers,
    and comes before and after them, is run as it is, but for the way from one to the next."""
    decoder = model.decoder
    if model.window:
        return False
    if type(model).decode is not Transformer.decode or type(decoder) is not Decoder:
        return False
    if any(
        part.training or part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part)
        for part in decoder.modules()
    ):
        return False
    return all(
        type(layer) in LAYERS and _parts(layer) == _built(type(layer)) for layer in decoder.layers
    )


def _parts(layer: nn.Module) -> tuple[dict[str, type], set[str]]:
    """The types of all that a layer is made of, and the names of its parameters."""
    kinds = {name: type(part) for name, part in layer.named_modules()}
    return kinds, {name for name, _ in layer.named_parameters()}


@lru_cache
def _built(layer: type[DecoderLayer]) -> tuple[dict[str, type], set[str]]:
    with torch.device("meta"):
        return _parts(layer(Config(1, d_model=1, n_heads=1, d_ff=1)))


def without_padding(logits: Tensor, config: Config) -> Tensor:
    """Where a target begins with the padding token, as Marian's, it is never written."""
    if config.bos_id == config.pad_id >= 0:
        logits[:, config.pad_id] = -torch.inf
    return logits


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
        return without_padding(self.model.generator(self.model.decoder.norm(x)), self.model.config)

    def reorder(self, rows: Tensor) -> None:
        self.cache[:, : self.length] = self.cache[:, : self.length, rows]

    def keep(self, sentences: Tensor) -> None:
        beams = torch.arange(self.beam, device=sentences.device)
        rows = (sentences[:, None] * self.beam + beams).flatten()
        self.cache = self.cache[:, :, rows]
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask[sentences]
        for layer in self.layers:
            key, value = layer.memory
            layer.memory = key[sentences], value[sentences]


class _Layer:
    """A decoder layer's step, on (row, d_model)."""

    def __init__(self, layer: DecoderLayer, memory: Tensor):
        attention, cross, forward = layer.self_attn, layer.cross_attn, layer.feed_forward
        query, parts = attention.query, (attention.key, attention.value)
        self.n_heads, self.n_cross_heads = attention.n_heads, cross.n_heads
        # folded into the queries
        scale, cross_scale = (
            (one.query.out_features // one.n_heads) ** -0.5 for one in (attention, cross)
        )
        self.projections = (
            torch.cat([query.bias * scale, *(part.bias for part in parts)]),
            torch.cat([query.weight * scale, *(part.weight for part in parts)]).T.contiguous(),
        )
        self.output = attention.output.weight, attention.output.bias
        self.cross_query = cross.query.weight * cross_scale, cross.query.bias * cross_scale
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
        query = linear(x, *self.cross_query).view(len(key), beam, self.n_cross_heads, -1)
        query = query.transpose(1, 2)
        heads = scaled_dot_product_attention(query, key, value, mask, scale=1.0)
        return linear(heads.transpose(1, 2).reshape(len(x), -1), *self.cross_output)

    def feed(self, x: Tensor) -> Tensor:
        return linear(linear(x, *self.linear1).relu_(), *self.linear2)
