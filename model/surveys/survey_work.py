"""The passes of a survey, in parts that any process can do in any order, and that are kept: a
survey that was stopped goes on where it stopped, with the same result.

A part is one measurement on some sentences. Sentences are grouped by length, always in the same
way, and one thread computes a part: a sum in another order would differ in the last digits.
"""

import hashlib
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from headlight.model.checkpoint import Checkpoint, parameters_sha256
from headlight.model.decoding.cache import with_parts
from headlight.model.files import replace_file
from headlight.model.probing.changes import Change
from headlight.model.probing.sites import parts_of, predicted_side, stack_of
from headlight.model.sites import ProbedModel
from headlight.model.surveys.head_counts import Counts, frequencies, head_counts
from headlight.model.surveys.importance import (
    Example,
    Unit,
    baseline_losses,
    losses,
    quality,
    units,
)
from headlight.model.surveys.trace_command import Processes
from headlight.model.surveys.trust import correlations

CHUNK = 250  # sentences of a part
MOST_REMEMBERED = 30  # batches of a source: more than there are in a part
VERSION = 3  # of what is measured: parts of another are not taken over
COUNTS, TRUST, PLAIN = "counts", "trust", "plain"
LOSS = "loss"
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Plan:
    """What is measured, and of which sentences, in their order.

    checkpoint with outputs of its heads in other texts
    measure    what answers are scored by, see importance.score; empty where nothing is known of
               what is right
    n_aligned  how many of the first sentences tell which heads align, and how far attention can be
               trusted: both take a pass for each source token
    """

    checkpoint: Checkpoint
    examples: tuple[Example, ...]
    measure: str
    n_aligned: int

    @property
    def units(self) -> list[Unit]:
        return units(self.checkpoint.model)

    @property
    def chunks(self) -> list[list[int]]:
        """Places of the examples, those of similar length together."""
        order = sorted(range(len(self.examples)), key=lambda i: len(self.examples[i].texts[0]))
        return [order[start : start + CHUNK] for start in range(0, len(order), CHUNK)]

    @property
    def parts(self) -> list[tuple[int, str]]:
        """(chunk, what): what all heads do, the model as it is, each unit by its number."""
        what = [COUNTS, TRUST, PLAIN, *map(str, range(len(self.units)))]
        return [(chunk, measurement) for chunk in range(len(self.chunks)) for measurement in what]

    @property
    def fingerprint(self) -> str:
        """Equal for equal plans alone."""
        model = parameters_sha256(self.checkpoint.model), self.checkpoint.model.config
        what = VERSION, CHUNK, self.measure, self.n_aligned
        return hashlib.sha256(repr((model, what, self.examples)).encode()).hexdigest()

    def done(self, part: tuple[int, str]) -> Arrays:
        """One part's numbers."""
        chunk, what = part
        examples = [self.examples[i] for i in self.chunks[chunk]]
        if what == COUNTS:
            frequency = frequencies(self.examples)
            return _packed(head_counts(self.checkpoint, examples, frequency, self.n_aligned))
        if what == TRUST:
            return {TRUST: correlations(self.checkpoint, examples, self.n_aligned)}
        unit = None if what == PLAIN else self.units[int(what)]
        changes = unit.changes if unit else ()
        checkpoint = self.checkpoint
        if changes and changes_target_alone(checkpoint.model, changes):
            checkpoint = self._remembering
        arrays = {LOSS: losses(checkpoint, examples, changes)}
        if self.measure:
            arrays[self.measure] = quality(checkpoint, examples, self.measure, changes)
        if unit and unit.part == "head":
            arrays |= baseline_losses(checkpoint, examples, unit.changes[0].scope)
        return arrays

    @cached_property
    def _remembering(self) -> Checkpoint:
        """The model as it reads a source once: most heads stand in the decoder, and the encoder is
        a quarter of the work."""
        model, target = self.checkpoint.model, predicted_side(self.checkpoint.model)
        stacks = {side.stack: Remembered(stack_of(model, side)) for side in model.sides()
                  if side != target}  # fmt: skip
        return replace(self.checkpoint, model=with_parts(model, stacks))


class Remembered(nn.Module):
    """In place of a stack of layers: what it gave for the same input, of the last few."""

    def __init__(self, stack: nn.Module):
        super().__init__()
        self._modules = stack._modules  # under their own names
        self.stack, self.outputs = [stack], {}

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        key = x.shape, x.cpu().numpy().tobytes()
        if key not in self.outputs:
            if len(self.outputs) == MOST_REMEMBERED:
                del self.outputs[next(iter(self.outputs))]
            self.outputs[key] = self.stack[0](x, mask)
        return self.outputs[key]


def changes_target_alone(model: ProbedModel, changes: Sequence[Change]) -> bool:
    """Whether no change concerns another text than the one that is predicted."""
    target = predicted_side(model).name
    return all(
        part.side == target
        for part in parts_of(model.sites(), model.sides())
        for change in changes
        if part.what in change.parts and change.scope.holds(part)
    )


def work(plan: Plan, folder: Path, processes: Processes, bar=None) -> dict[str, Arrays] | None:
    """Compute the parts missing in `folder`. Returns all numbers by name, each (sentence, ..), in
    the first process, and None in the others. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    # Parts are assigned regardless of existing files: other processes may be writing them.
    mine = plan.parts[processes.index :: processes.count]
    results: dict[tuple[int, str], Arrays] = {}
    with one_thread():
        for chunk, what in mine:
            file = folder / f"{what}-{chunk}.npz"
            if file.is_file():
                results[chunk, what] = _read(file)
            else:
                results[chunk, what] = plan.done((chunk, what))
                replace_file(file, _written(results[chunk, what]))
            if bar is not None:
                bar.update(min(processes.count, bar.total - bar.n))
    everyone = processes.gather(results)
    if everyone is None:
        return None
    done = {part: arrays for share in everyone for part, arrays in share.items()}
    return {
        what: _together(plan, [done[chunk, what] for chunk in range(len(plan.chunks))])
        for what in dict.fromkeys(what for _, what in plan.parts)
    }


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _packed(counts: Sequence[Counts]) -> Arrays:
    """By kind/measure → (sentence, 3, layers, heads)."""
    return {
        f"{kind}/{name}": np.stack(
            [
                [one[kind][name].total, one[kind][name].uniform, one[kind][name].rows]
                for one in counts
            ]
        )
        for kind, measures in counts[0].items()
        for name in measures
    }


def _together(plan: Plan, by_chunk: Sequence[Arrays]) -> Arrays:
    """The sentences of all chunks, in the order of the plan."""
    back = np.argsort([i for chunk in plan.chunks for i in chunk], kind="stable")
    return {name: np.concatenate([of[name] for of in by_chunk])[back] for name in by_chunk[0]}


def _written(arrays: Arrays) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]  # none is `allow_pickle`
    return file.getvalue()


def _read(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)
