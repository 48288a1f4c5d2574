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
DECADES = 9  # of the logarithmic scale of influence
NONE, LEAK = 1e-9, 1e-6  # what does not move a row; what moves one that should stay


def matrices_of(finding: Finding) -> list[Matrix]:
    """What a row depends on, what is right, and where it was mended on the fly, what that gave.
    Empty where nothing of that kind was tried."""
    if finding.found is None or finding.expected is None:
        return []
    right = finding.expected.numpy() > 0
    options: dict[str, Any] = {
        "row_name": finding.axes[0], "column_name": finding.axes[1], "single": True,
        "weights": True, "decades": DECADES, "scale": "how far a row moves",
    }  # fmt: skip

    def drawn(title: str, moves: np.ndarray) -> Matrix:
        moves = np.clip(moves, NONE / 10, 10)
        breaks = np.where(right, moves <= NONE, moves > LEAK) & bool(finding.fault)
        rows = tuple(f"{finding.axes[0]} {i + 1}" for i in range(len(right)))
        title = f"{title}: which {finding.axes[0]} depends on which {finding.axes[1]}"
        return Matrix(title, np.where(breaks, -moves, moves), rows=rows, **options)

    mended = [drawn("mended", finding.mended.numpy())] if finding.mended is not None else []
    found = drawn("found", finding.found.numpy())
    return [found, Matrix("right", right * 1.0, labelled=False, **options), *mended]


def drawn(found: Checkup) -> list[Matrix]:
    """Found and right, of the worst finding that has a picture."""
    return next(filter(None, map(matrices_of, found.by_state)), [])[:2]


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
