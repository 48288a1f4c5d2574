"""How a model knows word order: what a positional table contains, and what the model does with
another table, or with two words swapped."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from headlight.model.analysis.head_metrics import total_variation
from headlight.model.probing.changes import EVERY_KIND, Positioned, Scope
from headlight.model.probing.long_trace import LongTrace
from headlight.model.probing.run import Run
from headlight.model.probing.trace import Trace, trace, without_padding
from headlight.model.sites import ProbedModel
from headlight.model.transformer import PositionalEncoding

# Properties of a table, (position, d_model). Two neighbouring dimensions form a pair.


def sinusoids(length: int, d_model: int, base: float) -> np.ndarray:
    """The paper's table at another scale N, (length, d_model)."""
    return PositionalEncoding(length, d_model, base).table.numpy()


def wavelengths(table: np.ndarray) -> np.ndarray:
    """The wavelength of each pair in positions, (pair,), for a sinusoidal table: read off position
    1, whose angle is the frequency."""
    sine, cosine = table[1, 0::2].astype(np.float64), table[1, 1::2].astype(np.float64)
    return 2 * math.pi / np.arctan2(sine[: len(cosine)], cosine)


def products(table: np.ndarray) -> np.ndarray:
    """PE·PEᵀ, (position, position)."""
    table = table.astype(np.float64)
    return table @ table.T


@dataclass(frozen=True)
class ByDistance:
    """PE(p)·PE(p + k) over all p, for each distance k: mean, smallest and largest, (k,)."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def spread(self) -> float:
        """The largest difference of PE(p)·PE(q) between pairs of positions at the same distance,
        relative to the mean PE(p)·PE(p). 0: only distance counts."""
        return float((self.high - self.low).max() / self.mean[0])


def by_distance(products: np.ndarray) -> ByDistance:
    diagonals = [np.diagonal(products, k) for k in range(len(products))]
    return ByDistance(*(np.array([of(d) for d in diagonals]) for of in (np.mean, np.min, np.max)))


@dataclass(frozen=True)
class PairRotation:
    """The rotation that maps PE(p) closest to PE(p + k) in the plane of one pair, the same for all
    p.

    angle    radians, clockwise: the first number is the sine
    matrix   (2, 2)
    error    the largest difference between a number of matrix · PE(p) and of PE(p + k)
    """

    angle: float
    matrix: np.ndarray
    error: float


def rotation(table: np.ndarray, pair: int, k: int) -> PairRotation:
    points = table[:, 2 * pair : 2 * pair + 2].astype(np.float64)
    here, there = points[: len(points) - k], points[k:]
    cross = (here[:, 1] * there[:, 0] - here[:, 0] * there[:, 1]).sum()
    angle = math.atan2(cross, (here * there).sum())
    cosine, sine = math.cos(angle), math.sin(angle)
    matrix = np.array([[cosine, sine], [-sine, cosine]])
    return PairRotation(angle, matrix, float(np.abs(here @ matrix.T - there).max()))


# Effects of other positions


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


@dataclass(frozen=True)
class PositionEffect:
    """The effect of other positions on one pass: how far each head moves, kind → (layers, heads)
    (see head_metrics.total_variation), and the predictions."""

    moved: dict[str, np.ndarray]
    answers: Predictions


def with_positions(run: Run, kind: str, shift: int = 0) -> Run:
    """The same run with another kind of positions in all its texts."""
    positioned = Positioned(Scope(EVERY_KIND), kind, shift if kind == "shifted" else 0)
    return replace(run, changes=(*run.changes, positioned))


def effect(model: ProbedModel, before: Trace, kind: str, shift: int = 0) -> PositionEffect:
    """The pass `before` under other positions."""
    now = trace(model, with_positions(before.run, kind, shift))
    moved = {
        kind: total_variation(now.attention[kind], before.attention[kind]) for kind in now.attention
    }
    return PositionEffect(moved, predictions(now))


# Swapped words


@dataclass(frozen=True)
class Reordered:
    """A model's first text in its order and in another: row i of `after` is the token that was row
    order[i] of `before`; both are the last vectors of its stack, (position, d_model)."""

    order: tuple[int, ...]
    before: np.ndarray
    after: np.ndarray
    answers_before: Predictions
    answers_after: Predictions

    @property
    def largest(self) -> float:
        """The largest difference between a token's two rows. 0: the same rows in another order."""
        return float(np.abs(self.after - self.before[list(self.order)]).max())

    @property
    def moved(self) -> np.ndarray:
        """How far each token's row has moved, in mean lengths of a row; tokens in their new
        order."""
        far = np.linalg.norm(self.after - self.before[list(self.order)], axis=-1)
        return far / np.linalg.norm(self.before, axis=-1).mean()

    @property
    def distances(self) -> np.ndarray:
        """From each row after to each row before, in mean lengths of a row, (after, before)."""
        after, before = (
            torch.tensor(rows, dtype=torch.float64) for rows in (self.after, self.before)
        )
        # Not by a product of matrices: that would leave 1e-4 between equal rows.
        apart = torch.cdist(after, before, compute_mode="donot_use_mm_for_euclid_dist")
        return apart.numpy() / np.linalg.norm(self.before, axis=-1).mean()


def reordered(
    model: ProbedModel, run: Run, order: Sequence[int], kind: str = "", shift: int = 0
) -> Reordered:
    """Runs both orders of the first text's tokens, under another `kind` of positions if given. bos,
    eos and padding stay in place."""
    side, first = model.sides()[0], run.texts[0]
    other = first.take(order)
    run = with_positions(run, kind, shift) if kind else run
    passes = [trace(model, replace(run, texts=(text, *run.texts[1:]))) for text in (first, other)]
    rows = [each_trace.final[side.name] for each_trace in passes]
    begins = int(side.begins)
    places = [*range(begins), *(begins + i for i in order)]
    places += range(len(places), len(rows[0]))
    answers = [predictions(each_trace) for each_trace in passes]
    return Reordered(tuple(places), rows[0], rows[1], answers[0], answers[1])


def swap(length: int, first: int, second: int) -> tuple[int, ...]:
    """The order of `length` tokens with two of them swapped."""
    order = list(range(length))
    order[first], order[second] = order[second], order[first]
    return tuple(order)
