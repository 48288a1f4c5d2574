"""What a student is to write, as steps; and a misconception as one step that is swapped.

A part of the Transformer is a chain of small functions that name what they read. So the answer that
one gets under a misconception is the same chain with one function replaced, and two misconceptions
at once are two replacements. Nothing else is written per misconception than that function and its
sentence.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import combinations
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Case:
    """Inputs by name. `edge`: the note that one gets for this case alone, where failing it is no
    mistake. `only`: the misconception of who is right but here. `rows`, `columns`: tokens to label
    a picture with."""

    title: str
    inputs: Mapping[str, Any]
    edge: str = ""
    only: str = ""
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()


@dataclass(frozen=True)
class Mistake:
    """`swaps`: step → what one computes in its place."""

    name: str
    swaps: Mapping[str, Callable]
    sentence: str
    note: bool = False  # right all the same, but to be said


@dataclass(frozen=True, eq=False)
class Subject:
    """`asks`: how the student's function is called. `takes`: the inputs that it gets, in order.
    `steps`: name → function of inputs and earlier steps; the last is the result."""

    name: str
    asks: str
    takes: tuple[str, ...]
    steps: Mapping[str, Callable]
    cases: Callable[[], Sequence[Case]]
    mistakes: tuple[Mistake, ...] = ()
    axes: tuple[str, ...] = ()  # what the axes of the result are, for a sentence
    titles: Mapping[str, str] = field(default_factory=dict)  # step → in words
    loose: bool = False  # leading axes of size 1 do not matter
    listed: bool = False  # the result is a list of ids
    spoken: Callable | None = None  # the value of a case as the student's function gives it

    @property
    def result(self) -> str:
        return [*self.steps][-1]

    @cached_property
    def drawn(self) -> Sequence[Case]:
        return self.cases()

    def run(self, case: Case, swaps: Mapping[str, Callable] = {}) -> dict[str, Any]:
        """Step → what it gives."""
        found = dict(case.inputs)
        for name, compute in self.steps.items():
            compute = swaps.get(name, compute)
            found[name] = compute(*(found[read] for read in _reads(compute)))
        return found

    @cache  # noqa: B019
    def right(self) -> tuple[dict[str, Any], ...]:
        return tuple(self.run(case) for case in self.drawn)

    def under(self, mistakes: Sequence[Mistake]) -> "Answers":
        """What one gets of each case; an exception where that fails."""
        swaps = {step: swap for m in mistakes for step, swap in m.swaps.items()}
        return Answers(self, swaps)

    def _attempt(self, case: Case, swaps) -> Any:
        try:
            return self.run(case, swaps)[self.result]
        except (RuntimeError, IndexError, ValueError) as error:
            return error

    @cache  # noqa: B019
    def alone(self) -> tuple[tuple[Mistake, "Answers"], ...]:
        return tuple((m, self.under((m,))) for m in self.mistakes)

    def noted(self, some: Sequence[Mistake]):
        """The same with each of the notes, which no one counts: what an empty row becomes."""
        for note in self.mistakes:
            if note.note and not any({*note.swaps} & {*m.swaps} for m in some):
                yield self.under((*some, note))

    def pairs(self):
        """Two mistakes in different steps; made when first needed."""
        for two in combinations(self.mistakes, 2):
            if not {*two[0].swaps} & {*two[1].swaps} and not any(m.note for m in two):
                yield two


@cache
def _reads(compute: Callable) -> tuple[str, ...]:
    return tuple(
        p.name for p in inspect.signature(compute).parameters.values()
        if p.default is p.empty
    )  # fmt: skip


class Answers:
    """Of each case, computed when it is looked at: most candidates fail at the first."""

    def __init__(self, part: Subject, swaps: Mapping[str, Callable]):
        self.part, self.swaps, self.known = part, swaps, {}

    def __getitem__(self, i: int) -> Any:
        if i not in self.known:
            self.known[i] = self.part._attempt(self.part.drawn[i], self.swaps)
        return self.known[i]


ATOL, RTOL = 2e-5, 1e-4
SLACK = 200  # of a misconception, whose numbers may be large where the right ones are small


def same(one: Any, other: Any, loose: bool = False, slack: float = 1) -> bool:
    """Whether two results are equal within the rounding of float32; NaN equals NaN."""
    if isinstance(one, Exception) or isinstance(other, Exception):
        return isinstance(one, Exception) and isinstance(other, Exception)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return type(one) is type(other) and one == other
    if loose:
        one, other = squeezed(one), squeezed(other)
    if one.shape != other.shape or (one.dtype == torch.bool) != (other.dtype == torch.bool):
        return False
    return bool(close(one, other, slack).all())


def close(one: Tensor, other: Tensor, slack: float = 1) -> Tensor:
    """Cell by cell."""
    if one.dtype == torch.bool:
        return one == other
    one, other = one.double(), other.double()
    finite = other[other.isfinite()].abs()
    atol = ATOL * max(1.0, float(finite.max()) if finite.numel() else 1.0)
    return torch.isclose(one, other, rtol=RTOL, atol=atol * slack, equal_nan=True)


def plain(value: Any) -> Any:
    """A tensor of real numbers in memory, without its gradient. Raises what PyTorch does where it
    can be none: complex, nested, of the meta device."""
    value = value.detach().as_subclass(Tensor)
    if value.is_nested or value.is_complex():
        raise TypeError("no real numbers of one shape")
    value = value if value.layout is torch.strided else value.to_dense()
    return (value.dequantize() if value.is_quantized else value).cpu()


def squeezed(x: Tensor, least: int = 2) -> Tensor:
    while x.dim() > least and x.shape[0] == 1:
        x = x[0]
    return x
