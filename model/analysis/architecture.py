"""A model as the blocks of the paper's figure 1, with their parameters and output shapes for one
run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from torch import nn

from headlight.model.families.bert import TextEmbedding
from headlight.model.probing.sites import (
    embedding_of,
    final_norm_of,
    has_final_norm,
    layers_of,
    predicted_side,
    sublayers_of,
)
from headlight.model.sites import ProbedModel, Site
from headlight.model.variants import LogSoftmaxLinear

OUTPUT = "output"
# outputs of a stack that other stacks attend to
EMBEDDINGS, LAYER_OUTPUTS = "embeddings", "output of the layers"


@dataclass(frozen=True)
class Block:
    """One block.

    stack       Side.stack, or OUTPUT
    layer       from 0; None outside of layers
    part        "embedding", "position", the name of a sublayer, "add_norm" (of a sublayer's input
                and output), "norm" (before a sublayer, or behind the last layer), "mean" (over
                positions), "pooling" (of another way, too), "dense" (all linear maps after that),
                "generator", "softmax" or "log_softmax"
    shape       of its output
    sublayer    the sublayer that it is or that its norm goes with; empty outside of layers
    site        of an attention
    weights     of an attention: (heads, query, key)
    keys        of an attention to another stack: what it attends to, EMBEDDINGS or LAYERS
    parameters  without those of earlier blocks; `shares` names the block that it shares them with
    """

    stack: str
    layer: int | None
    part: str
    shape: tuple[int, ...]
    sublayer: str = ""
    site: Site | None = None
    weights: tuple[int, ...] = ()
    keys: str = ""
    parameters: int = 0
    shares: str = ""

    @property
    def kind(self) -> str:
        """Of attention, else empty."""
        return self.site.kind if self.site else ""


def blocks(model: ProbedModel, lengths: dict[str, int]) -> list[Block]:
    """All blocks, in the order of the forward pass within each stack. lengths: side → tokens."""
    owner: dict[int, str] = {}
    listed = []

    def add(block: Block, parameters: Sequence[nn.Parameter] = ()):
        place = block.part if block.layer is None else f"layer {block.layer + 1}"
        name = f"{block.stack} {place}"
        new = [parameter for parameter in parameters if id(parameter) not in owner]
        owner.update((id(parameter), name) for parameter in new)
        others = {owner[id(parameter)] for parameter in parameters} - {name}
        count, shares = sum(parameter.numel() for parameter in new), ", ".join(sorted(others))
        listed.append(replace(block, parameters=count, shares=shares))

    sites = {site.name: site for site in model.sites()}
    order = [side.name for side in model.sides()]
    for side in model.sides():
        stack, shape = side.stack, (lengths[side.name], model.config.d_model)
        embedding = embedding_of(model, side)
        positions = list(embedding.position.parameters())
        rest = [p for p in embedding.parameters() if all(p is not other for other in positions)]
        add(Block(stack, None, "embedding", shape), rest)
        if side.table:
            add(Block(stack, None, "position", shape), positions)
        for i, (name, layer) in enumerate(zip(side.layers, layers_of(model, side), strict=True)):
            for part, sublayer, norm in sublayers_of(layer):
                block = Block(stack, i, part, shape, part)
                if site := sites.get(f"{name}.{part}"):
                    weights = site.n_heads, lengths[site.query_side], lengths[site.key_side]
                    block = replace(block, site=site, weights=weights, keys=_keys(site, order))
                name_of_norm = "norm" if layer.norm_first else "add_norm"
                both = [(block, sublayer), (Block(stack, i, name_of_norm, shape, part), norm)]
                for block, module in reversed(both) if layer.norm_first else both:
                    add(block, list(module.parameters()))
        if has_final_norm(model, side):
            norm = final_norm_of(model, side)
            add(Block(stack, None, "norm", shape), list(norm.parameters()))
    predicted, generator = predicted_side(model), model.generator
    of_tokens = predicted.predicts in ("next token", "masked token")
    rows = lengths[predicted.name] if of_tokens else 1
    if isinstance(generator, TextEmbedding):
        add(Block(OUTPUT, None, "pooling", (rows, model.config.d_model)))
        if generator.dense:
            shape = rows, generator.config.d_embedding
            add(Block(OUTPUT, None, "dense", shape), list(generator.dense.parameters()))
        return listed
    if not of_tokens:
        add(Block(OUTPUT, None, "mean", (rows, model.config.d_model)))
    shape = rows, getattr(generator, "out_features", model.config.vocab_size)
    add(Block(OUTPUT, None, "generator", shape), list(generator.parameters()))
    softmax = "log_softmax" if isinstance(generator, LogSoftmaxLinear) else "softmax"
    add(Block(OUTPUT, None, softmax, shape))
    return listed


def _keys(site: Site, order: Sequence[str]) -> str:
    """What attention to another side reads: if that stack runs later, only its embeddings exist
    yet."""
    if site.query_side == site.key_side:
        return ""
    return (
        LAYER_OUTPUTS if order.index(site.key_side) < order.index(site.query_side) else EMBEDDINGS
    )


def alike(shown: Sequence[Block], stack: str) -> list[list[int]]:
    """Runs of identical layers of a stack: the figure's N ×."""
    layers: dict[int, list[Block]] = {}
    for block in shown:
        if block.stack == stack and block.layer is not None:
            layers.setdefault(block.layer, []).append(block)

    def build(layer: int) -> list[Block]:
        return [
            replace(block, layer=None, site=block.site and replace(block.site, layer=0, name=""))
            for block in layers[layer]
        ]

    return [list(run) for _, run in groupby(layers, build)]
