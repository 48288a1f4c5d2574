"""The modules behind what a model says of itself: its sites, where attention happens, and its
sides, the texts that it reads. Nobody else goes from a name to a module."""

from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn

from model.transformer import Embedding, MultiHeadAttention, Side, Site


def kinds_of(sites: Iterable[Site]) -> dict[str, tuple[Site, ...]]:
    """Kind of attention → its sites, in their order."""
    kinds: dict[str, tuple[Site, ...]] = {}
    for site in sites:
        kinds[site.kind] = (*kinds.get(site.kind, ()), site)
    return kinds


def sides_of(model: nn.Module) -> dict[str, Side]:
    """Name → side, in their order."""
    return {side.name: side for side in model.sides()}


def predicted_side(model: nn.Module) -> Side:
    """The side that the logits are about."""
    return next(side for side in model.sides() if side.predicts)


def attention_at(model: nn.Module, site: Site) -> MultiHeadAttention:
    return model.get_submodule(site.name)


def embedding_of(model: nn.Module, side: Side) -> Embedding:
    """What makes vectors of the side's tokens."""
    return model.get_submodule(side.embedding)


def embeddings_of(model: nn.Module) -> list[Embedding]:
    return [embedding_of(model, side) for side in model.sides()]


def stack_of(model: nn.Module, side: Side) -> nn.Module:
    """What the side's layers stand in."""
    return model.get_submodule(side.stack)


def layers_of(model: nn.Module, side: Side) -> list[nn.Module]:
    return [model.get_submodule(name) for name in side.layers]


def final_norm_of(model: nn.Module, side: Side) -> nn.Module:
    """What follows the last layer: an Identity where a layer ends in a norm of its own."""
    return model.get_submodule(side.norm)


def has_final_norm(model: nn.Module, side: Side) -> bool:
    """Whether a norm of its own follows the last layer, as pre-norm stacks need."""
    return not isinstance(final_norm_of(model, side), nn.Identity)


def device_of(model: nn.Module):
    """Where its weights are."""
    return next(model.parameters()).device


@dataclass(frozen=True)
class LayerParts:
    """The layer around one attention: `norm` goes with the attention, `next_norm` with the
    sublayer behind it, `feed_forward` ends the layer."""

    layer: nn.Module
    attention: MultiHeadAttention
    norm: nn.Module
    next_norm: nn.Module
    feed_forward: nn.Module


def parts_at(model: nn.Module, site: Site) -> LayerParts:
    layer_name, _, name = site.name.rpartition(".")
    layer = model.get_submodule(layer_name)
    sublayers = sublayers_of(layer)
    i = [sublayer_name for sublayer_name, _, _ in sublayers].index(name)
    (_, attention, norm), (_, _, next_norm) = sublayers[i : i + 2]
    return LayerParts(layer, attention, norm, next_norm, layer.feed_forward)


def sublayers_of(layer: nn.Module) -> list[tuple[str, nn.Module, nn.Module]]:
    """The sublayers of a layer in their order: name, sublayer, the norm that goes with it."""
    return [
        (name, layer.get_submodule(name), layer.get_submodule(norm))
        for name, norm in layer.sublayers.items()
    ]
