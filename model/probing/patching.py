"""Activation patching: outputs that a run takes from another run (Vig et al. 2020, Meng et al.
2022)."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.capture import inputs_of, outputs_of
from headlight.model.probing.changes import (
    PATCHES,
    READS,
    CannotChange,
    Change,
    Pathed,
    Scope,
    check,
    sender_of,
)
from headlight.model.probing.interventions import replace_head, replace_output
from headlight.model.probing.run import Run
from headlight.model.probing.sites import attention_at, embedding_of, parts_of, sides_of
from headlight.model.probing.trace import ids_of, read_of
from headlight.model.sites import ProbedModel
from headlight.model.tokenizer import Encoding


@torch.no_grad()
def recorded(model: ProbedModel, run: Run, given: PatchInputs = PatchInputs()) -> dict:
    """What every part gives in a run, as PatchInputs.other has it. `model` must be the caller's own
    view. Raises CannotRead and CannotChange: what others take from may not itself be patched."""
    if any(isinstance(change, PATCHES) for change in run.changes):
        raise CannotChange("The comparison is itself patched. Choose one without patches.")
    return _recorded(model, run, given)


def _recorded(model: ProbedModel, run: Run, given: PatchInputs) -> dict:
    ids = ids_of(model, read_of(model, run))
    parts = [p for p in parts_of(model.sites(), model.sides()) if p.what != "positions"]
    modules = {part.name: model.get_submodule(part.name) for part in parts}
    modules |= {side.name: embedding_of(model, side) for side in model.sides()}
    attentions = {p.name: attention_at(model, p) for p in parts if p.what == "attention"}
    projections = {(name, "heads"): module.output for name, module in attentions.items()}
    with (
        applied(model, run.changes, given),
        outputs_of(modules) as outputs,
        inputs_of(projections) as inputs,
    ):
        model(*ids, *run.masks.build(model, *ids))
    heads = {
        key: arguments[0][0].unflatten(-1, (attentions[key[0]].n_heads, -1))
        for key, arguments in inputs.items()
    }
    return heads | {name: output[0] for name, output in outputs.items()}


@torch.no_grad()
def read_by_path(
    model: ProbedModel, run: Run, senders: Sequence[Scope], given: PatchInputs
) -> dict[tuple[Scope, str, str], Tensor]:
    """What every part reads in a run if of one sender at a time it reads what that gave in
    `given.other`, as PatchInputs.other has it. All that other parts give is held: in a row of a
    batch for each sender (Wang et al. 2022). Raises CannotRead and CannotChange."""
    kept = tuple(change for change in run.changes if not isinstance(change, Pathed))
    now = _recorded(model, replace(run, changes=kept), given)
    parts = parts_of(model.sites(), model.sides())
    check([Pathed(Scope("logits"), sender) for sender in senders], parts)
    held = {key: now[key].repeat(len(senders), *[1] * now[key].dim()) for key in now}
    for row, sender in enumerate(senders):
        for part in parts:
            key = {"positions": part.side, "attention": (part.name, "heads")}
            at = key.get(part.what, part.name)
            heads = [h for h in range(max(1, part.n_heads)) if sender_of(part, h) == sender]
            for head in heads:
                head = slice(head, head + 1) if part.n_heads else slice(None)
                held[at][row, :, head] = given.other[at][:, head].to(held[at])
    reads = {(part.name, ""): model.get_submodule(part.name)
             for part in parts if part.what in ("feed-forward", "logits")}  # fmt: skip
    for site in model.sites():
        reads |= {(site.name, one): attention_at(model, site).get_submodule(one) for one in READS}
    with (
        applied(model, kept, given),
        outputs_of(reads) as outputs,  # before a feed-forward's own is held
        ExitStack() as stack,
    ):
        for side in model.sides():
            hold = replace_output(embedding_of(model, side), partial(_held, held[side.name]))
            stack.enter_context(hold)
        for part in parts:
            module = model.get_submodule(part.name)
            if part.what == "attention":
                heads = partial(_held, held[part.name, "heads"])
                stack.enter_context(replace_head(attention_at(model, part), slice(None), heads))
            elif part.what == "feed-forward":
                stack.enter_context(replace_output(module, partial(_held, held[part.name])))
        ids = [one.expand(len(senders), -1) for one in ids_of(model, read_of(model, run))]
        model.hidden(*ids, *run.masks.build(model, *ids))
    return {
        (sender, *at): output[row] for at, output in outputs.items()
        for row, sender in enumerate(senders)
    }  # fmt: skip


def _held(value: Tensor, output: Tensor) -> Tensor:
    return value


def check_fits(
    model: ProbedModel,
    donor: ProbedModel,
    changes: Iterable[Change],
    texts: Mapping[str, Encoding],
    other: Mapping[str, Encoding],
) -> None:
    """Raises CannotChange where patches come from a model of other sizes, or a text that they are
    made in has another length than in the run that they come from. Side → what the model reads."""
    parts = parts_of(model.sites(), model.sides())
    for change in changes:
        if not isinstance(change, PATCHES):
            continue
        if _sizes(donor) != _sizes(model):
            raise CannotChange(
                f"“{change}”: the comparison's model has different layers or sizes; patching "
                "needs the same."
            )
        for part in parts:
            concerned = part.what in change.parts and change.scope.holds(part)
            if not (concerned or isinstance(change, Pathed)):
                continue
            if part.side in texts and len(texts[part.side].ids) != len(other[part.side].ids):
                raise CannotChange(
                    f"“{change}”: the comparison's {sides_of(model)[part.side].title} has "
                    f"{len(other[part.side].ids)} tokens, this one {len(texts[part.side].ids)}; "
                    "patching needs the same number."
                )


def _sizes(model: ProbedModel) -> tuple:
    return model.config.d_model, parts_of(model.sites(), model.sides())
