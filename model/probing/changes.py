"""What one changes in a run, as values: frozen, written on one line, applied to a view by hooks.

A change concerns heads, by its scope. They act in one order, whatever the order of the line: what
may be attended to, then the temperature of the softmax, then single weights, then a head as a
whole. Masks change on the way into the softmax, so rows renormalise by themselves; weights on the
way out of it; a head's output on the way into the output projection.

    cross.1.2=off; encoder=hide:3; decoder.2=mask:window-2; cross.4.1=weight:2>5:0.7

A scope is a kind of attention, a layer of it, a head; `all` is every head. Lines count layers,
heads and tokens from 1, as the screen does; the classes count from 0.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from model.probing.interventions import replace_head, replace_softmax_inputs, replace_weights
from model.probing.sites import attention_at
from model.transformer import MultiHeadAttention, Site

ALL = "all"


class CannotChange(ValueError):
    """A change that cannot be read or made, in a sentence."""


@dataclass(frozen=True)
class Scope:
    """Which heads. None: of every layer, or every head; kind ALL: of every kind."""

    kind: str
    layer: int | None = None
    head: int | None = None

    def __str__(self) -> str:
        return ".".join(str(part) for part in (self.kind, *self._numbers()))

    def _numbers(self) -> Iterator[int]:
        for number in (self.layer, self.head):
            if number is not None:
                yield number + 1

    def holds(self, site: Site) -> bool:
        return self.kind in (ALL, site.kind) and self.layer in (None, site.layer)

    @property
    def heads(self) -> slice:
        """Of the heads of a layer."""
        return slice(None) if self.head is None else slice(self.head, self.head + 1)


@dataclass(frozen=True)
class Change:
    """One change; a class a verb. `order`: when it acts."""

    scope: Scope
    verb: ClassVar[str]
    order: ClassVar[int]

    def __str__(self) -> str:
        what = self.what()
        return f"{self.scope}={self.verb}" + (f":{what}" if what else "")

    def what(self) -> str:
        """What stands behind the verb on the line."""
        return ""

    @classmethod
    def read(cls, scope: Scope, what: str) -> "Change":
        """The inverse of `what`. Raises ValueError."""
        if what:
            raise ValueError
        return cls(scope)


class MaskChange(Change):
    """Changes what may be attended to."""

    order = 0

    def allow(self, allowed: Tensor) -> None:
        """Changes `allowed`, (batch, heads, query, key), in place."""
        raise NotImplementedError


class WeightChange(Change):
    """Changes weights on their way out of the softmax."""

    def weigh(self, weights: Tensor, allowed: Tensor) -> None:
        """Changes `weights`, (batch, heads, query, key), in place, under what was `allowed`."""
        raise NotImplementedError


PATTERNS: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "none": lambda i, j, n: (i >= 0) & (j >= 0),
    "causal": lambda i, j, n: j <= i,
    "window": lambda i, j, n: (i - j).abs() <= n,
    "prefix": lambda i, j, n: (j <= i) | (j < n),
    "strided": lambda i, j, n: (i - j) % n == 0,
    "diagonal": lambda i, j, n: i == j,
    "no_diagonal": lambda i, j, n: i != j,
    "no_first": lambda i, j, n: (i >= 0) & (j > 0),
}
SIZED = ("window", "prefix", "strided")  # these take a number: window-2


@dataclass(frozen=True)
class Patterned(MaskChange):
    """A ready-made mask in the place of the model's own. Padding that was hidden stays so."""

    pattern: str
    size: int = 0
    verb = "mask"

    def allow(self, allowed):
        rows, columns = (torch.arange(n, device=allowed.device) for n in allowed.shape[-2:])
        pattern = PATTERNS[self.pattern](rows[:, None], columns, self.size)
        allowed.copy_(pattern & allowed.any(dim=-2, keepdim=True))

    def what(self):
        return f"{self.pattern}-{self.size}" if self.pattern in SIZED else self.pattern

    @classmethod
    def read(cls, scope, what):
        pattern, _, size = what.partition("-")
        if pattern not in PATTERNS or bool(size) != (pattern in SIZED):
            raise ValueError
        return cls(scope, pattern, _counted(size) if size else 0)


@dataclass(frozen=True)
class Hidden(MaskChange):
    """Tokens that may not be attended to."""

    tokens: tuple[int, ...]
    verb = "hide"

    def allow(self, allowed):
        for token in self.tokens:
            allowed[..., token : token + 1] = False

    def what(self):
        return ",".join(str(token + 1) for token in self.tokens)

    @classmethod
    def read(cls, scope, what):
        return cls(scope, tuple(_counted(text) - 1 for text in what.split(",")))


@dataclass(frozen=True)
class _Painted(MaskChange):
    cells: tuple[tuple[int, int], ...]
    value: ClassVar[bool]

    def allow(self, allowed):
        for row, column in self.cells:
            allowed[..., row : row + 1, column : column + 1] = self.value

    def what(self):
        return ",".join(f"{row + 1}>{column + 1}" for row, column in self.cells)

    @classmethod
    def read(cls, scope, what):
        return cls(scope, tuple(_cell(text) for text in what.split(",")))


@dataclass(frozen=True)
class Forbidden(_Painted):
    """Cells, (query, key), that may not be attended to."""

    verb, value = "forbid", False


@dataclass(frozen=True)
class Allowed(_Painted):
    """Cells, (query, key), that may be attended to."""

    verb, value = "allow", True


@dataclass(frozen=True)
class Temperature(Change):
    """Scores are divided by it: above 1 the softmax is flatter, below 1 sharper."""

    value: float
    verb, order = "temperature", 1

    def what(self):
        return repr(self.value)

    @classmethod
    def read(cls, scope, what):
        return cls(scope, _number(what, above=0))


@dataclass(frozen=True)
class Weight(WeightChange):
    """One weight is set, the others of its row are scaled so that the row sums to 1."""

    row: int
    column: int
    weight: float
    verb, order = "weight", 2

    def weigh(self, weights, allowed):
        row, column = slice(self.row, self.row + 1), self.column
        if self.row >= weights.shape[-2] or column >= weights.shape[-1]:
            return  # while a target is written: not there yet
        if not allowed[..., row, column].all():
            raise CannotChange(f"“{self}”: this key is masked, its weight stays 0.")
        others = weights[..., row, :].clone()
        others[..., column] = 0
        rest = others.sum(dim=-1, keepdim=True)
        if self.weight < 1 and not (rest > 0).all():
            raise CannotChange(
                f"“{self}”: this row has its whole weight on one key; there is nothing to scale."
            )
        others *= (1 - self.weight) / torch.where(rest > 0, rest, 1)
        others[..., column] = self.weight
        weights[..., row, :] = others

    def what(self):
        return f"{self.row + 1}>{self.column + 1}:{self.weight!r}"

    @classmethod
    def read(cls, scope, what):
        cell, _, weight = what.partition(":")
        return cls(scope, *_cell(cell), _number(weight, most=1))


@dataclass(frozen=True)
class Uniform(WeightChange):
    """The head attends to everything that it may attend to alike."""

    verb, order = "uniform", 3

    def weigh(self, weights, allowed):
        keys = allowed.to(weights.dtype)  # a quotient of integers would be float32
        weights.copy_(keys / keys.sum(dim=-1, keepdim=True).clamp(min=1))


@dataclass(frozen=True)
class HeadOff(Change):
    """The head's output is zero."""

    verb, order = "off", 3


VERBS = {
    change.verb: change
    for change in (HeadOff, Uniform, Hidden, Patterned, Forbidden, Allowed, Temperature, Weight)
}
ENTRY = re.compile(r"(\w+?)(?:\.(\d+))?(?:\.(\d+))?=(\w+)(?::(.+))?", re.ASCII)


def parse(line: str) -> tuple[Change, ...]:
    """The changes of a line, in its order. Raises CannotChange, with the part that it quotes."""
    return tuple(_parse(part.strip()) for part in line.split(";") if part.strip())


def written(changes: Iterable[Change]) -> str:
    """The line that `parse` reads."""
    return "; ".join(map(str, changes))


def _parse(part: str) -> Change:
    match = ENTRY.fullmatch(part)
    if not match:
        raise CannotChange(
            f"“{part}” is no change; one is written as in “cross.1.2=off”: a kind of attention, "
            "a layer, a head, and what is done to it."
        )
    kind, layer, head, verb, what = match.groups()
    if verb not in VERBS:
        raise CannotChange(f"“{part}”: there is no “{verb}”; there are {', '.join(VERBS)}.")
    try:
        numbers = (None if text is None else _counted(text) - 1 for text in (layer, head))
        return VERBS[verb].read(Scope(kind, *numbers), what or "")
    except ValueError as error:
        raise CannotChange(f"“{part}”: what stands behind “{verb}” cannot be read.") from error


def _counted(text: str) -> int:
    """A number that counts from 1."""
    if not re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII):
        raise ValueError(text)
    return int(text)


def _cell(text: str) -> tuple[int, int]:
    row, column = text.split(">")
    return _counted(row) - 1, _counted(column) - 1


def _number(text: str, above: float = -1, most: float = math.inf) -> float:
    """A finite number ≥ 0."""
    number = float(text)
    if not (math.isfinite(number) and 0 <= number <= most and number > above):
        raise ValueError(text)
    return number


def check(changes: Iterable[Change], sites: Sequence[Site]) -> None:
    """Raises CannotChange for what a model with these sites does not have."""
    for change in changes:
        scope = change.scope
        if scope.kind != ALL and scope.kind not in {site.kind for site in sites}:
            kinds = ", ".join(dict.fromkeys(site.kind for site in sites))
            raise CannotChange(f"“{change}”: this model has no “{scope.kind}”; it has {kinds}.")
        there = [site for site in sites if scope.holds(site)]
        if not there:
            raise CannotChange(f"“{change}”: this model has no layer {scope.layer + 1} there.")
        if scope.head is not None and all(scope.head >= site.n_heads for site in there):
            raise CannotChange(f"“{change}”: this model has no head {scope.head + 1} there.")


@contextmanager
def applied(model: nn.Module, changes: Sequence[Change]) -> Iterator[None]:
    """The model runs with the changes; `model` must be the caller's own view. Enter it before
    `capture`, which then sees what the model used. Raises CannotChange."""
    sites = model.sites()
    check(changes, sites)
    with ExitStack() as hooks:
        for site in sites:
            here = sorted((c for c in changes if c.scope.holds(site)), key=lambda c: c.order)
            if here:
                hooks.enter_context(_changed(attention_at(model, site), here))
        yield


@contextmanager
def _changed(attention: MultiHeadAttention, changes: Sequence[Change]) -> Iterator[None]:
    allowed = None

    def masked(scores, mask):
        nonlocal allowed
        scores, allowed = scores.clone(), torch.ones_like(scores, dtype=torch.bool)
        if mask is not None:
            allowed &= mask
        for change in changes:
            if isinstance(change, MaskChange):
                change.allow(allowed[:, change.scope.heads])
            elif isinstance(change, Temperature):
                scores[:, change.scope.heads] /= change.value
        return scores, allowed

    def weighed(weights):
        weights = weights.clone()
        for change in changes:
            if isinstance(change, WeightChange):
                heads = change.scope.heads
                change.weigh(weights[:, heads], allowed[:, heads])
        return weights

    with ExitStack() as hooks:
        hooks.enter_context(replace_softmax_inputs(attention, masked))
        hooks.enter_context(replace_weights(attention, weighed))
        for change in changes:
            if isinstance(change, HeadOff):
                off = replace_head(attention, change.scope.heads, torch.zeros_like)
                hooks.enter_context(off)
        yield
