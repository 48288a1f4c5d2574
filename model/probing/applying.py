"""Applies changes to a view of a model, through hooks that a context manager removes.

Masks and temperatures change what goes into the softmax, so that rows renormalise by themselves;
weights what comes out of it; heads what goes into the output projection; sublayers and the
residual stream what their module gives; positions the table. While a target is written with a
key-value cache a pass has one row: the positional tables are asked for how many tokens have been
read, so each row is known by its place, and a change for a later one waits.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from headlight.model.probing.changes import (
    READS,
    CannotChange,
    Change,
    MaskChange,
    OutputChange,
    PatchInputs,
    Pathed,
    Positioned,
    Temperature,
    WeightChange,
    check,
)
from headlight.model.probing.interventions import (
    replace_head,
    replace_output,
    replace_positions,
    replace_softmax_inputs,
    replace_weights,
    without_rotation,
)
from headlight.model.probing.position_tables import table_of
from headlight.model.probing.sites import Part, attention_at, embedding_of, parts_of, sides_of
from headlight.model.sites import ProbedModel, Side
from headlight.model.transformer import MultiHeadAttention

ALL_ROWS = slice(None)  # of a batch


@contextmanager
def applied(
    model: ProbedModel, changes: Sequence[Change], given: PatchInputs = PatchInputs()
) -> Iterator[None]:
    """The model runs with the changes; `model` must be the caller's own view. Enter it before
    `capture`, which then sees what the model used. Raises CannotChange."""
    with applied_by_row(model, changes, (), given):
        yield


@contextmanager
def applied_by_row(
    model: ProbedModel,
    changes: Sequence[Change],
    rows: Sequence[Sequence[Change]],
    given: PatchInputs = PatchInputs(),
) -> Iterator[None]:
    """As `applied`, in all rows of a batch; row i besides under the changes `rows[i]`, which leave
    positions as they are."""
    placed = [(ALL_ROWS, change) for change in changes]
    placed += [(slice(i, i + 1), change) for i, more in enumerate(rows) for change in more]
    parts = parts_of(model.sites(), model.sides())
    check([change for _, change in placed], parts)
    placed.sort(key=lambda one: one[1].order)
    read: dict[str, int] = {}
    with ExitStack() as hooks:
        if placed:
            for side in model.sides():
                position = embedding_of(model, side).position
                count = partial(_count, read, side.name)
                hooks.enter_context(position.register_forward_pre_hook(count))
        for part in parts:
            here = [
                (rows, change)
                for rows, change in placed
                if part.what in change.parts and change.scope.holds(part)
            ]
            _hook(hooks, model, part, here, read, given)
        yield


Placed = Sequence[tuple[slice, Change]]


def _count(read: dict[str, int], side: str, module, inputs: tuple) -> None:
    read[side] = inputs[0]


def _hook(
    hooks: ExitStack, model: ProbedModel, part: Part, here: Placed, read: dict, given: PatchInputs
) -> None:
    """All changes of one part."""
    module = model.get_submodule(part.name)
    if any(isinstance(c, MaskChange | Temperature | WeightChange) for _, c in here):
        for hook in _softmax(attention_at(model, part), part, here, read):
            hooks.enter_context(hook)
    for rows, change in here:
        if isinstance(change, Positioned) and not _side(model, part).table:
            for attention in _attentions_without_table(model, part, change):
                hooks.enter_context(without_rotation(attention))
        elif isinstance(change, Positioned):
            table = table_of(change.kind, module, model.config.max_length, change.shift)
            embedding = embedding_of(model, _side(model, part))
            fits = partial(_check_positions, change, len(table))
            hooks.enter_context(module.register_forward_pre_hook(fits))
            hooks.enter_context(replace_positions(embedding, table))
        elif isinstance(change, Pathed):
            for reads in [change.reads] if change.reads else READS if part.n_heads else [""]:
                read_by = partial(change.read_by, part=part, reads=reads, given=given)
                inside = partial(_inside, rows, read_by)
                hooks.enter_context(replace_output(module.get_submodule(reads), inside))
        elif isinstance(change, OutputChange):
            heads = part.what == "attention" and not change.whole
            value = partial(_value, change, part, read, given)
            inside = partial(_inside, rows, value)
            if heads:
                attention = attention_at(model, part)
                hooks.enter_context(replace_head(attention, change.scope.heads, inside))
            else:
                hooks.enter_context(replace_output(module, inside))


def _check_positions(change: Positioned, most: int, module: nn.Module, inputs: tuple) -> None:
    if inputs[0] > most:
        raise CannotChange(
            f"“{change}” leaves {most:,} positions in the table, but this text has "
            f"{inputs[0]:,} tokens."
        )


def _side(model: ProbedModel, part: Part) -> Side:
    return sides_of(model)[part.side]


def _attentions_without_table(
    model: ProbedModel, part: Part, change: Positioned
) -> list[MultiHeadAttention]:
    """Those that turn queries and keys by the positions of a side to which no table is added."""
    if change.kind != "none":
        raise CannotChange(
            f"“{change}”: this model adds no positions to its embeddings; its attention rotates "
            "queries and keys instead. You can only switch that off (positions:none)."
        )
    return [attention_at(model, site) for site in model.sites() if site.query_side == part.side]


def _softmax(attention: MultiHeadAttention, part: Part, here: Placed, read: dict):
    """The hooks around an attention's softmax."""
    allowed: Tensor | None = None
    first = 0

    def masked(scores, mask):
        nonlocal allowed, first
        first = read[part.side] - scores.shape[-2]
        scores, there = scores.clone(), torch.ones_like(scores, dtype=torch.bool)
        if mask is not None:
            there &= mask
        for rows, change in here:
            if isinstance(change, MaskChange):
                change.allow(there[rows, change.scope.heads], first)
            elif isinstance(change, Temperature):
                heads = rows, change.scope.heads
                scores[heads] = change.divided(scores[heads])
        allowed = there
        return scores, there

    def weighed(weights):
        weights = weights.clone()
        assert allowed is not None  # `masked` came before
        for rows, change in here:
            if isinstance(change, WeightChange):
                heads = rows, change.scope.heads
                change.weigh(weights[heads], allowed[heads], first)
        return weights

    return replace_softmax_inputs(attention, masked), replace_weights(attention, weighed)


def _inside(rows: slice, value: Callable[[Tensor], Tensor], output: Tensor) -> Tensor:
    """`output` with other values in some rows of the batch."""
    if rows == ALL_ROWS:
        return value(output)
    output = output.clone()
    output[rows] = value(output[rows])
    return output


def _value(
    change: OutputChange, part: Part, read: dict, given: PatchInputs, output: Tensor
) -> Tensor:
    """The output, (batch, length, …), that a change puts in place of the original."""
    return change.replaced(output, part, read[part.side] - output.shape[1], given)
