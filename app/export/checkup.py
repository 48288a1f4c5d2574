"""A check-up of a whole Transformer that you wrote, by what it does.

from headlight import checkup

assert checkup(model)  # in pytest: what is wrong, by name, with the row that moved and the line
checkup(model, tokenizer)  # in a notebook: the same, and a picture
checkup.loss(lambda model, src, tgt: my_loss(model, src, tgt), size=1000)
checkup.decoding(lambda model, src: my_greedy(model, src))
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import numpy as np

from headlight.app.components.matrices import Matrix
from headlight.app.export import check
from headlight.model.checking.whole.checkup import check_model
from headlight.model.checking.whole.learning import check_decoding, check_loss
from headlight.model.checking.whole.result import Checkup, Finding

Given = ParamSpec("Given")
FAINTEST, DECADES = -9, 10  # the logarithm of the smallest influence that is drawn; the scale


def _strength(found: np.ndarray) -> np.ndarray:
    """Influence on a scale from 0 to 1, by its logarithm: a small leak is a leak."""
    logarithm = np.log10(np.clip(found, 10.0**FAINTEST, 10))
    return np.where(found > 10.0**FAINTEST, np.clip((logarithm - FAINTEST) / DECADES, 0.1, 1), 0)


def matrices_of(finding: Finding) -> list[Matrix]:
    """What a row depends on, beside what is right; the first cell that differs is framed. Empty
    where nothing of that kind was tried."""
    if finding.found is None or finding.expected is None:
        return []
    found, right = _strength(finding.found.numpy()), (finding.expected.numpy() > 0) * 1.0
    differs = np.argwhere((found > 0) != (right > 0))
    row, column = map(int, differs[0]) if len(differs) and finding.fault else (-1, -1)
    options: dict[str, Any] = {
        "row_name": finding.axes[0], "column_name": finding.axes[1], "follow": row,
        "column": column, "single": True, "weights": True, "numbers": False,
    }  # fmt: skip
    return [Matrix("found", found, **options), Matrix("right", right, labelled=False, **options)]


def drawn(found: Checkup) -> list[Matrix]:
    """Of the worst finding that has a picture."""
    return next(filter(None, map(matrices_of, found.by_state)), [])


class ShownCheckup(Checkup):
    """A check-up that a notebook shows as a picture."""

    def _repr_html_(self) -> str:
        page = check.page(self.model, str(self), bool(self), drawn(self))
        return check.frame(self.model, page)


def _shown(tries: Callable[Given, Checkup]) -> Callable[Given, ShownCheckup]:
    @wraps(tries)
    def shown(*args: Given.args, **kwargs: Given.kwargs) -> ShownCheckup:
        return ShownCheckup(**vars(tries(*args, **kwargs)))

    return shown


class _Checkups:
    """Called as `check_model`."""

    __call__ = staticmethod(_shown(check_model))
    loss = staticmethod(_shown(check_loss))
    decoding = staticmethod(_shown(check_decoding))


checkup = _Checkups()
