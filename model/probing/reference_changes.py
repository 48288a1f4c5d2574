"""Changes as torch.nn.Transformer can be given them: by other weights, and by an additive mask for
each head. A head that is off has no columns of the output projection, one that attends uniformly
has keys that are zero, a temperature divides queries. A single weight, and what another run gave,
it cannot be given."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from headlight.model.masks import Masks
from headlight.model.probing.changes import (
    LEAST,
    CannotChange,
    Change,
    HeadMean,
    HeadOff,
    MaskChange,
    Patched,
    Positioned,
    Skipped,
    Temperature,
    Uniform,
    WeightSet,
)
from headlight.model.probing.position_tables import table_of
from headlight.model.probing.sites import parts_of
from headlight.model.transformer import MultiHeadAttention, Transformer
from headlight.model.variants import LearnedPositions


@torch.no_grad()
def with_other_weights(
    model: Transformer, changes: Sequence[Change], means: Mapping[str, Tensor]
) -> Transformer:
    """A copy of a model that does by itself what the changes ask for, masks apart. Raises
    CannotChange for what no weights can do."""
    for change in changes:
        if isinstance(change, WeightSet | Patched):
            raise CannotChange(
                f"“{change}” cannot be applied to torch.nn.Transformer: it accepts only other "
                "masks and other weight matrices."
            )
    model = copy.deepcopy(model)
    for part in parts_of(model.sites(), model.sides()):
        module = model.get_submodule(part.name)
        here = [c for c in changes if part.what in c.parts and c.scope.holds(part)]
        here.sort(key=lambda change: change.order)
        for number, change in enumerate(here, start=1):
            if isinstance(change, Skipped):
                last = module.output if part.what == "attention" else module.linear2
                _scale(last, slice(None), 0)
            elif isinstance(change, Positioned):
                table = table_of(change.kind, module, model.config.max_length, change.shift)
                other = LearnedPositions(*table.shape, _weight=table.clone())
                model.get_submodule(part.name.rpartition(".")[0]).position = other
            elif part.what == "attention":
                heads = set(range(part.n_heads)[change.scope.heads])
                if isinstance(change, HeadOff | HeadMean):  # of one head the last of them holds
                    for later in here[number:]:
                        if isinstance(later, HeadOff | HeadMean):
                            heads -= set(range(part.n_heads)[later.scope.heads])
                _give_heads(module, change, heads, means.get(part.name))
    return model.requires_grad_(False)


def _give_heads(
    attention: MultiHeadAttention, change: Change, heads: set[int], mean: Tensor | None
) -> None:
    width = attention.output.in_features // attention.n_heads
    for head in heads:
        rows = slice(head * width, (head + 1) * width)
        if isinstance(change, Temperature):
            _scale(attention.query, rows, 1 / max(change.value, LEAST))
        elif isinstance(change, Uniform):
            _scale(attention.key, rows, 0)
        elif isinstance(change, HeadMean) and mean is not None:
            attention.output.bias += attention.output.weight[:, rows] @ mean[head].to(
                attention.output.weight
            )
        if isinstance(change, HeadOff | HeadMean):
            attention.output.weight[:, rows] = 0


def _scale(linear: nn.Linear, rows: slice, factor: float) -> None:
    for parameter in linear.parameters():
        parameter[rows] *= factor


@contextmanager
def under_masks(
    twins: Mapping[str, Sequence[nn.MultiheadAttention]],
    model: Transformer,
    changes: Sequence[Change],
    masks: Masks,
    ids: Sequence[Tensor],
) -> Iterator[None]:
    """PyTorch's attentions, kind → one a layer, each under an additive mask of (heads, query, key)
    where a change concerns it. Of a batch of one."""
    usual = dict(
        zip(dict.fromkeys(s.kind for s in model.sites()), masks.build(model, *ids), strict=True)
    )
    texts = dict(zip((side.name for side in model.sides()), ids, strict=True))
    with ExitStack() as hooks:
        for site in model.sites():
            here = [c for c in changes if isinstance(c, MaskChange) and c.scope.holds(site)]
            if not here:
                continue
            shape = site.n_heads, texts[site.query_side].shape[1], texts[site.key_side].shape[1]
            allowed = torch.ones(1, *shape, dtype=torch.bool, device=ids[0].device)
            if (mask := usual[site.kind]) is not None:
                allowed &= mask
            for change in here:
                change.allow(allowed[:, change.scope.heads], 0)
            added = torch.zeros(shape, device=ids[0].device).masked_fill(~allowed[0], -torch.inf)
            hooks.enter_context(_mask(twins[site.kind][site.layer], added))
        yield


@contextmanager
def _mask(attention: nn.MultiheadAttention, added: Tensor) -> Iterator[None]:
    def give(module, arguments, named):
        own = {
            "attn_mask": added.to(arguments[0].dtype),
            "key_padding_mask": None,
            "is_causal": False,
        }
        return arguments, named | own

    with attention.register_forward_pre_hook(give, with_kwargs=True):
        yield
