"""Calls what a student wrote: as a function or a module, in PyTorch or NumPy, and says in a
sentence what went wrong on the way."""

import inspect
import re
import sys
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from headlight.model.checking.part import close, plain

SIZES = re.compile(
    r"size of tensor a \((\d+)\).*?\((\d+)\)|tensor to be: \[\d+, (\d+)\] but got: \[\d+, (\d+)"
)

MISSING = re.compile(r"cannot import name '(\w+)' from '(\w+)'")
PRODUCT = re.compile(r"shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)")
SHRINKS = re.compile(r"\.(sum|mean|var|std|norm|max|amax|min|amin)\(")


MOST = 400  # tensors kept of one call


class Seen(TorchFunctionMode):
    """Keeps PyTorch's results while it is on, each with the line of `file` that made it, so that
    the first step that is not ours is found. NumPy's are not seen."""

    def __init__(self, file: str):
        super().__init__()
        self.file, self.names = file, set[str]()
        self.made: list[tuple[Tensor, int]] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.names.add(getattr(func, "__name__", ""))
        if isinstance(result, Tensor) and result.is_floating_point() and len(self.made) < MOST:
            with suppress(Exception):  # of layouts that cannot be copied
                self.made.append((plain(result).clone(), self._line()))
        return result

    def _line(self) -> int:
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self.file:
            frame = frame.f_back
        return frame.f_lineno if frame else 0

    @property
    def is_coarse(self) -> bool:
        """Whether some of it was computed in half precision."""
        return any(value.dtype in (torch.float16, torch.bfloat16) for value, _ in self.made)

    def line_of(self, ours: Tensor) -> int | None:
        """That of the first tensor with the numbers of `ours`, in whatever order its axes are."""
        alike = (line for value, line in self.made if _has_same_numbers(value, ours.detach()))
        return next(alike, None)


def _has_same_numbers(one: Tensor, other: Tensor) -> bool:
    if one.numel() != other.numel():
        return False
    one, other = (x.flatten().double().clamp(-1e6, 1e6).sort().values for x in (one, other))
    return bool(close(one.nan_to_num(), other.nan_to_num()).all())


@dataclass
class Outcome:
    """What a call gave. `value`: a tensor, or a list of ids; `error` and `line`: an exception, and
    where in the student's file; `changed`: inputs changed in place; `dtype`: of the tensor, or the
    type that the ids came in."""

    value: Any = None
    error: BaseException | None = None
    line: int = 0
    text: str = ""
    file: str = ""
    changed: tuple[str, ...] = ()
    dtype: str = ""
    seen: Seen | None = None


def called(
    function: Callable, names: Sequence[str], inputs: Mapping[str, Any], numpy: bool,
    seen: bool = False, keywords: Mapping[str, str] = {}, listed: bool = False,
) -> Outcome:  # fmt: skip
    """`function` on copies of the inputs. `keywords`: parameter → input; `listed`: it returns ids,
    in whatever they stand."""
    # What is one tensor stays one: in self-attention `query is key` holds.
    reads = [*names, *keywords.values()]
    copies = {id(inputs[name]): copied(inputs[name], numpy) for name in reads}
    given = {name: copies[id(inputs[name])] for name in reads}
    if keywords:
        ordered = [given[name] for name in names]
        by_name = {parameter: given[name] for parameter, name in keywords.items()}
    else:
        ordered, by_name = _accepted(function, given)
    before = {name: copied(value, False) for name, value in given.items()}
    if isinstance(function, nn.Module):
        function.eval()
    outcome = Outcome(seen=Seen(file_of(function)) if seen else None)
    try:
        with torch.no_grad(), outcome.seen or nullcontext():
            value = function(*ordered, **by_name)
    except Exception as error:  # the student's own
        outcome.error = error
        outcome.line, outcome.text, outcome.file = where(error, file_of(function))
        return outcome
    outcome.changed = tuple(
        name for name, value in given.items()
        if isinstance(before[name], Tensor) and not _is_equal(before[name], value)
    )  # fmt: skip
    return read_value(outcome, value, listed)


def read_value(outcome: Outcome, value: Any, listed: bool = False) -> Outcome:
    """With what a call returned. What is no tensor and no list of ids stays as it is."""
    if listed:
        outcome.value, outcome.dtype = _ids(value), type(value).__name__
        if isinstance(outcome.value, list) and not all(type(x) is int for x in outcome.value):
            outcome.value = Odd("a list of other things")
        return outcome
    value = value[0] if isinstance(value, tuple) and value else value
    is_numpy = not isinstance(value, Tensor)
    if is_numpy and hasattr(value, "__array__"):
        with suppress(Exception):
            value = torch.as_tensor(np.asarray(value))
    if isinstance(value, Tensor):
        try:
            value = plain(value)
        except Exception:  # complex, nested, of the meta device
            outcome.value = Odd(
                "complex numbers" if value.is_complex() else "an odd kind of tensor"
            )
            return outcome
        is_double = value.dtype == torch.float64
        outcome.dtype = "" if is_numpy and is_double else str(value.dtype).removeprefix("torch.")
        value = value.float() if is_double else value
    outcome.value = value
    return outcome


@dataclass(frozen=True)
class Odd:
    """In place of a tensor that cannot be compared."""

    said: str


def _ids(value: Any) -> Any:
    """A list of integers, of ids that stand in a list, a tuple, a tensor or an array, also as a
    batch of one or beside something else; what is none, as it is."""
    with suppress(Exception):
        if isinstance(value, Tensor | np.ndarray):
            is_row = np.prod(value.shape) == value.shape[-1]
            return _ids(value.reshape(-1).tolist()) if is_row else value
        items = [*value] if isinstance(value, list | tuple | deque) else None
        if items is None:
            return value
        if items and _is_row(items[0]) and (len(items) == 1 or isinstance(value, tuple)):
            return _ids(items[0])
        numbers = [x.item() if hasattr(x, "item") else x for x in items]
        if all(isinstance(x, int | float) and int(x) == x for x in numbers):
            return [int(x) for x in numbers]
    return value


def _is_row(x: Any) -> bool:
    return isinstance(x, list | tuple) or (isinstance(x, Tensor | np.ndarray) and x.ndim > 0)


def _is_equal(before: Tensor, value: Any) -> bool:
    """Whether an input is what it was. False also where it cannot be read any more."""
    try:
        return torch.equal(before.nan_to_num(), torch.as_tensor(value).nan_to_num())
    except Exception:
        return False


def _accepted(function: Callable, given: dict) -> tuple[list, dict]:
    """In order and by name; without a mask of None that the function does not take."""
    try:
        parameters = inspect.signature(
            function.forward if isinstance(function, nn.Module) else function
        ).parameters.values()
    except (TypeError, ValueError):
        return [*given.values()], {}
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return [*given.values()], {}
    by_name = {p.name: given[p.name] for p in parameters
               if p.kind is p.KEYWORD_ONLY and p.name in given}  # fmt: skip
    most = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    names = [name for name in given if name not in by_name]
    if most < len(names) and set(names[most:]) <= {"mask"} and given.get("mask") is None:
        names = names[:most]
    return [given[name] for name in names], by_name


def copied(value: Any, numpy: bool) -> Any:
    if isinstance(value, Tensor):
        return value.clone().numpy() if numpy else value.clone()
    if isinstance(value, np.ndarray):
        return torch.as_tensor(value.copy())
    return value


def file_of(function: Callable) -> str:
    try:
        target = type(function) if isinstance(function, nn.Module) else inspect.unwrap(function)
        return inspect.getfile(target)
    except (TypeError, OSError):  # a class of a notebook
        return ""


def where(error: BaseException, file: str) -> tuple[int, str, str]:
    """The last line of the student's file in a traceback: number, text, file."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.filename == file]
    if isinstance(error, SyntaxError) and isinstance(error.lineno, int):
        return error.lineno, (error.text or "").strip(), error.filename or file
    return (own[-1].lineno or 0, own[-1].line or "", file) if own else (0, "", file)


def said(outcome: Outcome) -> str:
    """An exception as a sentence."""
    sentence = _said(outcome)
    return sentence[:1].upper() + sentence[1:]


def _said(outcome: Outcome) -> str:
    error = outcome.error
    message = message_of(error)
    place = f"Line {outcome.line}: " if outcome.line else ""
    text = f" ({outcome.text})" if outcome.text else ""
    if isinstance(error, NotImplementedError):
        return f"{place}not written yet."
    if isinstance(error, SyntaxError):
        return f"{place}{message_of(error.msg) or 'invalid syntax'}.{text}"
    if isinstance(error, RecursionError):
        return f"{place}it calls itself without an end."
    if isinstance(error, MemoryError) or "allocate memory" in message:
        return f"{place}it needs more memory than there is.{text}"
    if isinstance(error, TypeError | AttributeError) and "NoneType" in message:
        return f"{place}an input may be None, as a mask that hides nothing.{text}"
    sizes = SIZES.search(message)
    if isinstance(error, RuntimeError) and sizes:
        one, other = filter(None, sizes.groups())
        hint = ""
        if SHRINKS.search(outcome.text) and "keepdim" not in outcome.text:
            hint = " A sum, mean or maximum takes its axis away; keepdim=True keeps it."
        return f"{place}sizes {one} and {other} meet on one axis.{hint}{text}"
    product = PRODUCT.search(message)
    if product:
        _, inner, other, columns = product.groups()
        hint = ""
        if inner == columns:
            hint = " PyTorch keeps a matrix as (out, in): multiply by its transpose, x @ w.T."
        return (
            f"{place}in a matrix product the inner sizes, {inner} and {other}, must be equal."
            f"{hint}{text}"
        )
    if "with a bool tensor is not supported" in message:
        return f"{place}the mask holds booleans; for 1 − mask write ~mask.{text}"
    if isinstance(error, TypeError) and "positional argument" in message:
        return f"{place}{message}."
    missing = MISSING.search(message)
    if isinstance(error, ImportError) and missing:
        return f"{place}there is no {missing[1]} in {missing[2]}.py.{text}"
    kind = type(error).__name__
    return f"{place}{kind}{': ' * bool(message)}{message[:200].rstrip('.')}.{text}"


def message_of(error: object) -> str:
    """In one line that can be printed; "" where it has none."""
    try:
        said = "" if error is None else str(error)
    except Exception:
        return ""
    return " ".join("".join(c if c.isprintable() else " " for c in said[:2000]).split())


def wants_numpy(function: Callable, takes: Sequence[str]) -> bool:
    """Whether it was written for NumPy: its file imports that and not PyTorch. Not if it takes
    sublayers, which are PyTorch's."""
    if isinstance(function, nn.Module) or "attend" in takes:
        return False
    names = getattr(inspect.unwrap(function), "__globals__", {})
    has = {getattr(v, "__name__", "").partition(".")[0] for v in list(names.values())
           if inspect.ismodule(v)}  # fmt: skip
    return "numpy" in has and "torch" not in has
