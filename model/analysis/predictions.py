"""What a model predicts in one pass, row by row."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headlight.model.probing.long_trace import LongTrace
from headlight.model.probing.trace import Trace, without_padding


@dataclass(frozen=True)
class Predictions:
    """A model's predictions in one pass. Rows are positions of the predicted side without padding.

    wanted             probability of the token that comes next in it, (row,), eos behind the
                       last (NaN for a model without eos); of a masked token, the token that
                       stands there; where a class is predicted the probability of each, (class,)
    best, probability  the likeliest answer and its probability, (row,)
    preceding          see Pass, (row,)

    An embedding model predicts nothing: there are no rows.
    """

    wanted: np.ndarray
    best: np.ndarray
    probability: np.ndarray
    preceding: Sequence[int | None] = ()


def predictions(trace: Trace | LongTrace) -> Predictions:
    side = trace.predicted
    if side.predicts == "embedding":
        return Predictions(np.zeros(0), np.zeros(0, int), np.zeros(0))
    if side.predicts == "class":
        ids, shares = trace.most_probable()
        return Predictions(shares[0][ids[0].argsort()], ids[:, 0], shares[:, 0], trace.preceding)
    real = without_padding(trace.texts[side.name])
    ids, shares = trace.most_probable(1)
    wanted = np.exp(trace.log_probabilities[:real])
    return Predictions(wanted, ids[:real, 0], shares[:real, 0], trace.preceding[:real])
