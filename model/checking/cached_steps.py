"""A cached step is called once for each token, and passes its cache on to the next call."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from headlight.model.checking.calling import (
    Outcome,
    copied,
    file_of,
    read_value,
    wants_numpy,
    where,
)
from headlight.model.checking.parts import CACHED_STEP
from headlight.model.checking.verdict import Verdict, judged


def _whole(function, case, seen=False) -> Outcome:
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


def judge(function, **how: Any) -> Verdict:
    return judged(replace(CACHED_STEP, spoken=_whole), function, numpy=False, **how)
