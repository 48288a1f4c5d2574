"""What the results have in common that hold arrays."""

import reprlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import torch


class OneLine:
    """A dataclass (with `repr=False`) whose repr is one line, whatever it holds: of an array its
    shape."""

    def __repr__(self) -> str:
        shown = (f"{f.name}={brief(getattr(self, f.name))}" for f in fields(self) if f.repr)  # pyright: ignore[reportArgumentType]
        return f"{type(self).__name__}({', '.join(shown)})"


def brief(value: Any) -> str:
    if isinstance(value, np.ndarray | torch.Tensor):
        return f"array{tuple(value.shape)}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {brief(item)}' for key, item in value.items())}}}"
    if isinstance(value, tuple) and any(isinstance(item, np.ndarray | tuple) for item in value):
        return f"({', '.join(map(brief, value[:2]))}{', …' * (len(value) > 2)})"
    return reprlib.repr(value)


class ByValue(OneLine):
    """A dataclass (with `eq=False`) that equals another with the same values. The == that
    `dataclass` writes asks an array for one truth value, which raises."""

    __hash__ = None  # pyright: ignore[reportAssignmentType] # as of all that is equal by its arrays

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self is other or all(
            _same(getattr(self, name), getattr(other, name)) for name in _fields(self)
        )


def _fields(value: Any) -> list[str]:
    return [field.name for field in fields(value)]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        one, other = one.detach().cpu().numpy(), other.detach().cpu().numpy()
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        # NaN stands for a number that there is not.
        return np.array_equal(one, other, equal_nan=one.dtype.kind == other.dtype.kind == "f")
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list) and type(one) is type(other):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


class NoSuchName(KeyError):
    """A KeyError whose message is a sentence."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError quotes it


class NamedArrays(dict):
    """A dict that says which names it has where it lacks one, and shows its arrays' shapes."""

    __repr__ = brief  # pyright: ignore[reportAssignmentType]

    def __missing__(self, name: object) -> Any:
        raise NoSuchName(f"There is no {name!r} here. Choose from {', '.join(map(repr, self))}.")
