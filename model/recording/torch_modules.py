"""Records nn.MultiheadAttention wherever it stands in a model, and changes its masks and switches
its heads off. The rest happens inside one function of torch, which nothing can enter."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from headlight.model.probing.changes import CannotChange, Change, HeadOff, MaskChange
from headlight.model.recording.inputs import Read
from headlight.model.recording.unchanged import unchanged
from headlight.model.recording.watch import Call, Place, Room, Watch, names_of
from headlight.model.recording.weights import CannotRecord

ARGUMENTS = (
    "query", "key", "value", "key_padding_mask", "need_weights", "attn_mask",
    "average_attn_weights", "is_causal",
)  # fmt: skip
LENGTH_FIRST = (
    "Without batch_first, the first axis of the input is the length: this is text {} of {}, with "
    "{} tokens. If the first axis is the batch, build the module with batch_first=True."
)
CANNOT = "“{}”: in a module of torch one can switch heads off and change masks, no more."


def check_changes(changes: Sequence[Change]) -> None:
    for change in changes:
        if not isinstance(change, MaskChange | HeadOff):
            raise CannotChange(CANNOT.format(change))


@torch.no_grad()
def read_modules(
    model: nn.Module, read: Read, changes: Mapping[Place, Sequence[Change]] = {}
) -> list[Call]:
    """The calls of nn.MultiheadAttention within a model of torch. Hooks keep its layers off the
    path on which they compute no weights."""
    all_names = names_of(model)
    names = {m: all_names[m] for m in all_names if isinstance(m, nn.MultiheadAttention)}
    if not names:
        raise CannotRecord(
            "This model has no attention that can be read: neither one of transformers nor an "
            "nn.MultiheadAttention. Give its weights instead."
        )
    watch = Watch({**names}, Room([*chain(*names.values())], (None, None)))
    places: list[Place] = []
    projections = {module: module.out_proj.weight for module in names}

    def ask(module, args, kwargs):
        given = dict(zip(ARGUMENTS, args, strict=False)) | kwargs
        at = -2 if module.batch_first or given["query"].ndim == 2 else 0
        rows, keys = (given[what].shape[at] for what in ("query", "key"))
        places.append(watch.place(module))
        watch.room.check(places[-1][0], module.num_heads, rows, keys)
        here = changes.get(places[-1], ())
        if masks := [change for change in here if isinstance(change, MaskChange)]:
            given |= _masked(given, module.num_heads, rows, keys, masks)
        if off := [change for change in here if isinstance(change, HeadOff)]:
            weight = projections[module].clone()
            for change in off:  # (d_model, heads, d_head)
                weight.view(len(weight), module.num_heads, -1)[:, change.scope.heads] = 0
            module.out_proj.weight = nn.Parameter(weight, requires_grad=False)
        return (), given | {"need_weights": True, "average_attn_weights": False}

    def keep(module, args, kwargs, output):
        module.out_proj.weight = projections[module]
        watch.calls.append(Call(*places.pop(), output[1].detach(), module.num_heads))

    with unchanged(model), ExitStack() as hooks:
        model.eval()
        for module, weight in projections.items():
            hooks.callback(setattr, module.out_proj, "weight", weight)
            hooks.enter_context(module.register_forward_pre_hook(ask, with_kwargs=True))
            hooks.enter_context(module.register_forward_hook(keep, with_kwargs=True))
        model(*read.ordered, **read.inputs)
    if not watch.calls:
        raise CannotRecord(f"{type(model).__name__} does not call its attention in this pass.")
    return list(watch.calls)


def length_first(
    model: nn.Module, read: Read, calls: Sequence[Call], row: int
) -> tuple[Read, list[str]]:
    """What a pass read, and a note where the first axis of its input was the length and others
    may have meant it as the batch: then the texts of the batch attend to each other."""
    texts = (x for x in (*read.ordered, *read.inputs.values()) if isinstance(x, Tensor))
    size = next((tuple(text.shape[:2]) for text in texts if text.ndim > 1), None)
    batch, rows = (calls[0].weights.shape[at] for at in (0, -2))
    firsts = {m.batch_first for m in model.modules() if isinstance(m, nn.MultiheadAttention)}
    if batch == 1 or True in firsts or size != (rows, batch):
        return read, []
    note = LENGTH_FIRST.format(row + 1, batch, rows)
    return Read({}, (None, None)), [note]


def _masked(
    given: Mapping[str, Any], heads: int, rows: int, keys: int, changes: Sequence[MaskChange]
) -> dict[str, Tensor | bool | None]:
    """The masks that a module is called with as one, changed: (batch × heads, query, key)."""
    query: Tensor = given["query"]
    mask, padding = given.get("attn_mask"), given.get("key_padding_mask")
    count = 1 if query.ndim == 2 else query.numel() // (rows * query.shape[-1])
    added = torch.zeros(count, heads, rows, keys, dtype=query.dtype, device=query.device)
    if mask is not None:
        mask = mask.view(count, heads, rows, keys) if mask.ndim == 3 else mask
        added = added + _added(mask, query.dtype)
    if padding is not None:
        added = added + _added(padding.view(count, 1, 1, keys), query.dtype)
    least = torch.finfo(query.dtype).min
    allowed = before = added > least / 2
    allowed = allowed.clone()
    for change in changes:
        change.allow(allowed[:, change.scope.heads], 0)
    added = torch.where(before, added, 0).masked_fill(~allowed, least)
    return {"attn_mask": added.flatten(0, 1), "key_padding_mask": None, "is_causal": False}


def _added(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask as it is added to scores; in a mask of truth values True hides."""
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -torch.inf)
