"""The modules behind a model's sites (where attention happens) and sides (the texts it reads). No
other file looks up modules by name: a site names an attention, a side its embedding and layers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from torch import nn

from headlight.model.sites import Layer, ProbedModel, Side, Site
from headlight.model.transformer import Embedding, FeedForward, MultiHeadAttention


class Place(NamedTuple):
    """A head, such as the selected one, counted from 0, its layer among those of its kind, as in a
    trace's arrays. The screen counts from 1, and layers as the model numbers them."""

    kind: str
    layer: int
    head: int


def kinds_of(sites: Iterable[Site]) -> dict[str, tuple[Site, ...]]:
    """Kind of attention → its sites, in their order."""
    kinds: dict[str, tuple[Site, ...]] = {}
    for site in sites:
        kinds[site.kind] = (*kinds.get(site.kind, ()), site)
    return kinds


def sides_of(model: ProbedModel) -> dict[str, Side]:
    """Name → side, in their order."""
    return {side.name: side for side in model.sides()}


def predicted_side(model: ProbedModel) -> Side:
    """The side that the logits are about."""
    return next(side for side in model.sides() if side.predicts)


def attention_at(model: ProbedModel, at: "Site | Part") -> MultiHeadAttention:
    return model.get_submodule(at.name)  # pyright: ignore[reportReturnType]  # see above


def embedding_of(model: ProbedModel, side: Side) -> Embedding:
    """The module that embeds the side's tokens."""
    return model.get_submodule(side.embedding)  # pyright: ignore[reportReturnType]  # see above


def embeddings_of(model: ProbedModel) -> list[Embedding]:
    return [embedding_of(model, side) for side in model.sides()]


def stack_of(model: ProbedModel, side: Side) -> nn.Module:
    """What the side's layers stand in."""
    return model.get_submodule(side.stack)


def layers_of(model: ProbedModel, side: Side) -> list[Layer]:
    return [_layer(model, name) for name in side.layers]


def _layer(model: ProbedModel, name: str) -> Layer:
    return model.get_submodule(name)  # pyright: ignore[reportReturnType]  # see above


def final_norm_of(model: ProbedModel, side: Side) -> nn.Module:
    """What follows the last layer: an Identity where a layer ends in a norm of its own."""
    return model.get_submodule(side.norm)


def steps_within(part: nn.Module) -> dict[str, nn.Module]:
    """Step → the module within a part whose output it is, as the part itself says in `steps` (see
    families/parts.py); none in the paper's parts."""
    return {step: part.get_submodule(name) for step, name in getattr(part, "steps", {}).items()}


def has_final_norm(model: ProbedModel, side: Side) -> bool:
    """Whether a norm of its own follows the last layer, as pre-norm stacks need."""
    return not isinstance(final_norm_of(model, side), nn.Identity)


@dataclass(frozen=True)
class Part:
    """A part of a model that can be changed.

    what    "attention", "feed-forward", "residual" (the vectors that leave a layer), "positions" or
            "logits" (the vectors that they are made of)
    kind    what a line of changes calls it: the kind of a site, encoder_feed_forward,
            encoder_residual, …; of positions the title of their side
    layer   from 0; -1 for positions and logits
    name    of its module
    side    the text whose tokens are its rows
    n_heads of an attention, else 0
    """

    what: str
    kind: str
    layer: int
    name: str
    side: str
    n_heads: int = 0


def parts_of(sites: Iterable[Site], sides: Iterable[Side]) -> list[Part]:
    """All parts that can be changed, attention first."""
    parts = [
        Part("attention", site.kind, site.layer, site.name, site.query_side, site.n_heads)
        for site in sites
    ]
    for side in sides:
        for layer, name in enumerate(side.layers):
            kind = f"{side.stack}_feed_forward"
            parts.append(Part("feed-forward", kind, layer, f"{name}.feed_forward", side.name))
            parts.append(Part("residual", f"{side.stack}_residual", layer, name, side.name))
        parts.append(Part("positions", side.title, -1, f"{side.embedding}.position", side.name))
        if side.predicts:
            parts.append(Part("logits", "logits", -1, side.norm, side.name))
    return parts


def device_of(model: ProbedModel):
    """Where its weights are."""
    return next(model.parameters()).device


@dataclass(frozen=True)
class LayerParts:
    """The layer around one attention: `norm` goes with the attention, `next_norm` with the
    sublayer behind it, `feed_forward` ends the layer."""

    layer: Layer
    attention: MultiHeadAttention
    norm: nn.Module
    next_norm: nn.Module
    feed_forward: FeedForward


def parts_at(model: ProbedModel, site: Site) -> LayerParts:
    layer_name, _, name = site.name.rpartition(".")
    layer = _layer(model, layer_name)
    sublayers = sublayers_of(layer)
    i = [sublayer_name for sublayer_name, _, _ in sublayers].index(name)
    (_, _, norm), (_, _, next_norm) = sublayers[i : i + 2]
    return LayerParts(layer, attention_at(model, site), norm, next_norm, layer.feed_forward)


def sublayers_of(layer: Layer) -> list[tuple[str, nn.Module, nn.Module]]:
    """The sublayers of a layer in their order: name, sublayer, the norm that goes with it."""
    return [
        (name, layer.get_submodule(name), layer.get_submodule(norm))
        for name, norm in layer.sublayers.items()
    ]
