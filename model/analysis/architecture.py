"""A model as the blocks of the paper's figure 1, with their parameters and what they do to one
run's texts."""

from dataclasses import dataclass

from torch import nn

from model.probing.sites import (
    embedding_of,
    final_norm_of,
    has_final_norm,
    layers_of,
    predicted_side,
    sublayers_of,
)

OUTPUT = "output"


@dataclass(frozen=True)
class Block:
    """One block. stack: Side.stack, or OUTPUT; layer counts from 0, None
    outside of layers; part: "embedding", the name of a sublayer, "norm" or "generator"; kind: of
    attention, else empty. `parameters` counts what no block before it has: what is shared counts
    once, and `shares` says with whom. `shape` is that of its output."""

    stack: str
    layer: int | None
    part: str
    kind: str
    parameters: int
    shares: str
    shape: tuple[int, ...]
    weights: tuple[int, ...] = ()  # of an attention: (heads, query, key)


def blocks(model: nn.Module, lengths: dict[str, int]) -> list[Block]:
    """Every block that has parameters, and the norms within the sublayers they belong to, from
    the first side's embedding to the generator. lengths: side → tokens."""
    owner: dict[int, str] = {}
    listed = []

    def add(stack, layer, part, modules, shape, site=None):
        count, others = 0, set()
        name = " ".join(filter(None, (stack, part))) if layer is None else f"{stack} {layer + 1}"
        for module in modules:
            for parameter in module.parameters():
                if id(parameter) in owner and owner[id(parameter)] != name:
                    others.add(owner[id(parameter)])
                elif id(parameter) not in owner:
                    owner[id(parameter)] = name
                    count += parameter.numel()
        weights = (site.n_heads, lengths[site.query_side], lengths[site.key_side]) if site else ()
        shares = ", ".join(sorted(others))
        kind = site.kind if site else ""
        listed.append(Block(stack, layer, part, kind, count, shares, shape, weights))

    d_model = model.config.d_model
    sites = {site.name: site for site in model.sites()}
    for side in model.sides():
        stack, shape = side.stack, (lengths[side.name], d_model)
        add(stack, None, "embedding", [embedding_of(model, side)], shape)
        for i, (name, layer) in enumerate(zip(side.layers, layers_of(model, side), strict=True)):
            for part, sublayer, norm in sublayers_of(layer):
                site = sites.get(f"{name}.{part}")
                add(stack, i, part, [sublayer, norm], shape, site)
        if has_final_norm(model, side):
            add(stack, None, "norm", [final_norm_of(model, side)], shape)
    predicted = predicted_side(model)
    rows = lengths[predicted.name] if predicted.predicts == "next token" else 1
    add(OUTPUT, None, "generator", [model.generator], (rows, model.generator.out_features))
    return listed
