"""Activation patching: outputs that a run takes from another run (Vig et al. 2020, Meng et al.
2022)."""

from collections.abc import Iterable, Mapping

import torch

from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.capture import inputs_of, outputs_of
from headlight.model.probing.changes import CannotChange, Change, Patched
from headlight.model.probing.run import Run
from headlight.model.probing.sites import attention_at, parts_of, sides_of
from headlight.model.probing.trace import ids_of, read_of
from headlight.model.sites import ProbedModel
from headlight.model.tokenizer import Encoding


@torch.no_grad()
def recorded(model: ProbedModel, run: Run, given: PatchInputs = PatchInputs()) -> dict:
    """What every part gives in a run, as PatchInputs.other has it. `model` must be the caller's own
    view. Raises CannotRead and CannotChange: what others take from may not itself be patched."""
    if any(isinstance(change, Patched) for change in run.changes):
        raise CannotChange("The comparison is itself patched. Choose one without patches.")
    ids = ids_of(model, read_of(model, run))
    parts = [p for p in parts_of(model.sites(), model.sides()) if p.what != "positions"]
    modules = {part.name: model.get_submodule(part.name) for part in parts}
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
        if not isinstance(change, Patched):
            continue
        if _sizes(donor) != _sizes(model):
            raise CannotChange(
                f"“{change}”: the comparison's model has different layers or sizes; patching "
                "needs the same."
            )
        for part in parts:
            if part.what not in change.parts or not change.scope.holds(part):
                continue
            if part.side in texts and len(texts[part.side].ids) != len(other[part.side].ids):
                raise CannotChange(
                    f"“{change}”: the comparison's {sides_of(model)[part.side].title} has "
                    f"{len(other[part.side].ids)} tokens, this one {len(texts[part.side].ids)}; "
                    "patching needs the same number."
                )


def _sizes(model: ProbedModel) -> tuple:
    return model.config.d_model, parts_of(model.sites(), model.sides())
