"""Calls what a student wrote: as a function or a module, in PyTorch or NumPy, and says in a
sentence what went wrong on the way."""

import inspect
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headlight.model.checking.steps_seen import Seen

SIZES = re.compile(
    r"size of tensor a \((\d+)\).*?\((\d+)\)|tensor to be: \[\d+, (\d+)\] but got: \[\d+, (\d+)"
)

PRODUCT = re.compile(r"shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)")
SHRINKS = re.compile(r"\.(sum|mean|var|std|norm|max|amax|min|amin)\(")


@dataclass
class Outcome:
    """What a call gave. `value`: a tensor or a list; `rest`: what else a tuple held; `error` and
    `line`: an exception, and where in the student's file; `changed`: inputs changed in place."""

    value: Any = None
    rest: Any = ()
    error: BaseException | None = None
    line: int = 0
    text: str = ""
    file: str = ""
    changed: tuple[str, ...] = ()
    dtype: str = ""
    seen: Seen | None = None


def called(
    function: Callable, names: Sequence[str], inputs: Mapping[str, Any], numpy: bool,
    seen: bool = False,
) -> Outcome:  # fmt: skip
    """`function` on copies of the inputs."""
    # What is one tensor stays one: in self-attention `query is key` holds.
    copies = {id(inputs[name]): copied(inputs[name], numpy) for name in names}
    given = {name: copies[id(inputs[name])] for name in names}
    given = _accepted(function, given)
    before = {name: copied(value, False) for name, value in given.items()}
    if isinstance(function, nn.Module):
        function.eval()
    outcome = Outcome(seen=Seen(file_of(function)) if seen else None)
    try:
        with torch.no_grad(), outcome.seen or nullcontext():
            value = function(*given.values())
    except Exception as error:  # the student's own
        outcome.error = error
        outcome.line, outcome.text, outcome.file = where(error, file_of(function))
        return outcome
    outcome.changed = tuple(
        name for name, value in given.items()
        if isinstance(before[name], Tensor)
        and not torch.equal(
            before[name].nan_to_num(), torch.as_tensor(value).nan_to_num())
    )  # fmt: skip
    outcome.value, *outcome.rest = value if isinstance(value, tuple) else (value,)
    if isinstance(outcome.value, np.ndarray | np.generic):
        outcome.value = torch.as_tensor(np.asarray(outcome.value))
        if outcome.value.dtype == torch.float64:  # NumPy's own habit
            outcome.value = outcome.value.float()
    if isinstance(outcome.value, Tensor):
        outcome.dtype = str(outcome.value.dtype).removeprefix("torch.")
        outcome.value = outcome.value.detach()
        if outcome.value.dtype not in (torch.bool,):
            outcome.value = outcome.value.float() if outcome.dtype == "float64" else outcome.value
    return outcome


def _accepted(function: Callable, given: dict) -> dict:
    """Without the last ones that the function does not take, such as a mask."""
    try:
        parameters = inspect.signature(
            function.forward if isinstance(function, nn.Module) else function
        ).parameters.values()
    except (TypeError, ValueError):
        return given
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return given
    most = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    names = [*given]
    if most < len(names) and set(names[most:]) <= {"mask"} and given.get("mask") is None:
        return {name: given[name] for name in names[:most]}
    return given


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
    if isinstance(error, SyntaxError) and error.lineno:
        return error.lineno, (error.text or "").strip(), error.filename or file
    return (own[-1].lineno or 0, own[-1].line or "", file) if own else (0, "", file)


def said(outcome: Outcome) -> str:
    """An exception as a sentence."""
    error = outcome.error
    message = " ".join(str(error).split())
    place = f"Line {outcome.line}: " if outcome.line else ""
    if isinstance(error, NotImplementedError):
        return f"{place}not written yet."
    if isinstance(error, SyntaxError):
        return f"{place}{error.msg}. ({outcome.text})"
    if isinstance(error, RecursionError):
        return f"{place}it calls itself without an end."
    if isinstance(error, MemoryError) or "allocate memory" in message:
        return f"{place}it needs more memory than there is. ({outcome.text})"
    if isinstance(error, TypeError | AttributeError) and "NoneType" in message:
        return f"{place}an input may be None, as a mask that hides nothing. ({outcome.text})"
    sizes = SIZES.search(message)
    if isinstance(error, RuntimeError) and sizes:
        one, other = filter(None, sizes.groups())
        hint = ""
        if SHRINKS.search(outcome.text) and "keepdim" not in outcome.text:
            hint = " A sum, mean or maximum takes its axis away; keepdim=True keeps it."
        return f"{place}sizes {one} and {other} meet on one axis.{hint} ({outcome.text})"
    product = PRODUCT.search(message)
    if product:
        _, inner, other, columns = product.groups()
        hint = ""
        if inner == columns:
            hint = " PyTorch keeps a matrix as (out, in): multiply by its transpose, x @ w.T."
        return (
            f"{place}in a matrix product the inner sizes, {inner} and {other}, must be equal."
            f"{hint} ({outcome.text})"
        )
    if "with a bool tensor is not supported" in message:
        return f"{place}the mask holds booleans; for 1 − mask write ~mask. ({outcome.text})"
    if isinstance(error, TypeError) and "positional argument" in message:
        return f"{place}{message}."
    text = f" ({outcome.text})" if outcome.text else ""
    return f"{place}{type(error).__name__}: {message[:200].rstrip('.')}.{text}"


def wants_numpy(function: Callable) -> bool:
    """Whether it was written for NumPy: its file imports that and not PyTorch."""
    if isinstance(function, nn.Module):
        return False
    names = getattr(inspect.unwrap(function), "__globals__", {})
    has = {getattr(v, "__name__", "").partition(".")[0] for v in list(names.values())
           if inspect.ismodule(v)}  # fmt: skip
    return "numpy" in has and "torch" not in has
