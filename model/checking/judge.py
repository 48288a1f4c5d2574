"""Is my part of the Transformer right? By the name of the part, see PARTS."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from headlight.model.checking import modules
from headlight.model.checking.calling import (
    Outcome,
    copied,
    file_of,
    read_value,
    wants_numpy,
    where,
)
from headlight.model.checking.part import Case
from headlight.model.checking.parts import CACHED_STEP, MULTI, PARTS
from headlight.model.checking.verdict import Verdict, cannot_tell, judged


def verdict(name: str, function: Callable, case: Case | None = None, **how: Any) -> Verdict:
    """What is to be said of a part: a function, a module or, of `multi_head`, a class. `case`: one
    more, as of a real sentence; `how`: see `judged`. Raises ValueError for a name that is none."""
    if name not in PARTS:
        raise ValueError(f"There is no part {name!r}; there are {', '.join(PARTS)}.")
    part = PARTS[name]
    if case:
        how["cases"] = [case]
    if part is MULTI:
        return modules.judge_multi_head(function, **how)
    if part is CACHED_STEP:
        return judged(replace(CACHED_STEP, spoken=_in_steps), function, numpy=False)
    if isinstance(function, type):
        try:
            function = function()
        except Exception:  # the student's own
            return cannot_tell(
                part,
                f"It is a class that cannot be made without arguments. Give "
                f"what is to be called, {part.asks}.",
            )
    return judged(part, function, **how)


def _in_steps(function, case, seen=False) -> Outcome:
    """A cached step, which is called once for each token and passes its cache on."""
    numpy, cache, rows = wants_numpy(function, CACHED_STEP.takes), None, []
    try:
        for t in range(case.inputs["q"].shape[-2]):
            new = [copied(case.inputs[name][:, :, t : t + 1], numpy) for name in "qkv"]
            found = function(*new, cache)
            if not isinstance(found, tuple | list) or len(found) != 2:
                raise TypeError("it should return two things, the output and the cache")
            out, cache = found
            one = read_value(Outcome(), out)
            if not isinstance(one.value, Tensor):
                return one
            rows.append(one)
        return Outcome(torch.cat([row.value for row in rows], -2), dtype=rows[0].dtype)
    except Exception as error:
        outcome = Outcome(error=error)
        outcome.line, outcome.text, outcome.file = where(error, file_of(function))
        return outcome
