"""A cached step is called once for each token, and passes its cache on to the next call."""

from dataclasses import replace

import torch

from headlight.model.checking.calling import Outcome, file_of, where
from headlight.model.checking.parts import CACHED_STEP
from headlight.model.checking.verdict import Verdict, judged


def _whole(function, case, seen=False) -> Outcome:
    q, k, v = (case.inputs[name].clone() for name in "qkv")
    cache, rows = None, []
    try:
        for t in range(q.shape[-2]):
            new = [x[:, :, t : t + 1].clone() for x in (q, k, v)]
            out, cache = function(*new, cache)
            rows.append(out)
        return Outcome(torch.cat(rows, -2), dtype=str(rows[0].dtype).removeprefix("torch."))
    except Exception as error:
        outcome = Outcome(error=error)
        outcome.line, outcome.text, outcome.file = where(error, file_of(function))
        return outcome


def judge(function) -> Verdict:
    return judged(replace(CACHED_STEP, spoken=_whole), function, numpy=False)
