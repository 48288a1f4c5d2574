"""A model as the blocks of the paper's figure 1, with their parameters and what they do to one
sentence pair."""

from dataclasses import dataclass

from torch import nn

from model.capture import is_attention
from model.trace import KINDS


@dataclass(frozen=True)
class Block:
    """One block. stack: "encoder", "decoder" or "output"; layer counts from 0, None outside of
    layers; kind: of attention, else empty. `parameters` counts what no block before it has: what
    is shared counts once, and `shares` says with whom. `shape` is of what it gives on."""

    stack: str
    layer: int | None
    part: str
    kind: str
    parameters: int
    shares: str
    shape: tuple[int, ...]
    weights: tuple[int, ...] = ()  # of an attention: (heads, query, key)


def blocks(model: nn.Module, src_length: int, tgt_length: int) -> list[Block]:
    """Every block that has parameters, and the norms within the sublayers they belong to, from
    the source's embedding to the generator."""
    length = {"encoder": src_length, "decoder": tgt_length}
    kind_of = {path: kind for kind, path in KINDS.items()}
    classifier = not model.decoder.layers
    owner: dict[int, str] = {}
    found = []

    def add(stack, layer, part, modules, shape, kind="", weights=()):
        own, others = 0, set()
        name = " ".join(filter(None, (stack, part))) if layer is None else f"{stack} {layer + 1}"
        for module in modules:
            for parameter in module.parameters():
                if id(parameter) in owner and owner[id(parameter)] != name:
                    others.add(owner[id(parameter)])
                elif id(parameter) not in owner:
                    owner[id(parameter)] = name
                    own += parameter.numel()
        shares = ", ".join(sorted(others))
        found.append(Block(stack, layer, part, kind, own, shares, shape, weights))

    d_model = model.config.d_model
    for stack, side in (("encoder", "src_embedding"), ("decoder", "tgt_embedding")):
        if stack == "decoder" and classifier:
            continue
        shape = (length[stack], d_model)
        add(stack, None, "embedding", [getattr(model, side)], shape)
        for i, layer in enumerate(getattr(model, stack).layers):
            for n, (part, sublayer) in enumerate(_sublayers(layer), start=1):
                kind = kind_of.get((stack, part), "")
                keys = length["encoder" if part == "cross_attn" else stack]
                weights = (sublayer.n_heads, length[stack], keys) if kind else ()
                add(stack, i, part, [sublayer, getattr(layer, f"norm{n}")], shape, kind, weights)
        final = getattr(model, stack).norm
        if not isinstance(final, nn.Identity):
            add(stack, None, "norm", [final], shape)
    rows = 1 if classifier else tgt_length
    add("output", None, "generator", [model.generator], (rows, model.generator.out_features))
    return found


def _sublayers(layer: nn.Module) -> list[tuple[str, nn.Module]]:
    """In the order of the paper: attentions, then feed-forward."""
    children = dict(layer.named_children())
    holds_weights = {
        name for name, part in children.items() if any(is_attention("", m) for m in part.modules())
    }
    order = [name for name in ("self_attn", "cross_attn") if name in holds_weights]
    return [(name, children[name]) for name in (*order, "feed_forward")]
