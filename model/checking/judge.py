"""Is my part of the Transformer right? By the name of the part, see PARTS."""

from collections.abc import Callable
from typing import Any

from headlight.model.checking import cached_steps, modules
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
        return cached_steps.judge(function)
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
