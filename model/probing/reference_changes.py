"""Changes as torch.nn.Transformer can be given them: by other weights, and by an additive mask for
each head. A head that is off has no columns of the output projection, one that attends uniformly
has keys that are zero, a temperature divides queries: each change says so itself. A single weight,
and what another run gave, it cannot be given."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from headlight.model.masks import Masks
from headlight.model.probing.changes import CannotChange, Change, MaskChange, OutputChange
from headlight.model.probing.sites import Part, parts_of
from headlight.model.sites import ProbedModel


@torch.no_grad()
def with_other_weights(
    model: ProbedModel, changes: Sequence[Change], means: Mapping[str, Tensor]
) -> ProbedModel:
    """A copy of a model that does by itself what the changes ask for, masks apart. Raises
    CannotChange for what no weights can do."""
    for change in changes:
        if type(change).reweigh is Change.reweigh:
            raise CannotChange(
                f"“{change}” cannot be applied to torch.nn.Transformer: it accepts only other "
                "masks and other weight matrices."
            )
    model = copy.deepcopy(model)
    for part in parts_of(model.sites(), model.sides()):
        here = [c for c in changes if part.what in c.parts and c.scope.holds(part)]
        here.sort(key=lambda change: change.order)
        for number, change in enumerate(here, start=1):
            heads = _heads(part, change) if part.what == "attention" else set()
            if _of_heads(change):  # of one head the last of them holds
                for later in filter(_of_heads, here[number:]):
                    heads -= _heads(part, later)
            change.reweigh(model, part, heads, means.get(part.name))
    return model.requires_grad_(False)


def _heads(part: Part, change: Change) -> set[int]:
    return set(range(part.n_heads)[change.scope.heads])


def _of_heads(change: Change) -> bool:
    """Whether the change replaces the outputs of single heads."""
    return isinstance(change, OutputChange) and not change.whole


@contextmanager
def under_masks(
    twins: Mapping[str, Sequence[nn.MultiheadAttention]],
    model: ProbedModel,
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
