"""Where word order comes from: what is in a positional table, and what a model does when it is
given another one, or when two words change places."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from model.analysis.head_metrics import total_variation
from model.probing.changes import ALL, Positioned, Scope
from model.probing.long_trace import LongTrace
from model.probing.run import Run
from model.probing.trace import Trace, trace, without_padding
from model.transformer import PositionalEncoding

# What is in a table, (position, d_model). Two neighbouring dimensions are a pair.


def sinusoids(length: int, d_model: int, base: float) -> np.ndarray:
    """The paper's table at another scale N, (length, d_model)."""
    return PositionalEncoding(length, d_model, base).table.numpy()


def wavelengths(table: np.ndarray) -> np.ndarray:
    """How many positions a full turn of each pair takes, (pair,), in a table of sinusoids: read
    off position 1, whose angle is the frequency."""
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
        """How far two pairs of positions at one distance differ at most, as a share of the mean
        PE(p)·PE(p). 0: distance alone counts."""
        return float((self.high - self.low).max() / self.mean[0])


def by_distance(products: np.ndarray) -> ByDistance:
    diagonals = [np.diagonal(products, k) for k in range(len(products))]
    return ByDistance(*(np.array([of(d) for d in diagonals]) for of in (np.mean, np.min, np.max)))


@dataclass(frozen=True)
class Rotation:
    """The turn that takes PE(p) nearest to PE(p + k) in the plane of one pair, one for all p.

    angle    radians, clockwise: the first number is the sine
    matrix   (2, 2)
    error    the largest difference between a number of matrix · PE(p) and of PE(p + k)
    """

    angle: float
    matrix: np.ndarray
    error: float


def rotation(table: np.ndarray, pair: int, k: int) -> Rotation:
    points = table[:, 2 * pair : 2 * pair + 2].astype(np.float64)
    here, there = points[: len(points) - k], points[k:]
    cross = (here[:, 1] * there[:, 0] - here[:, 0] * there[:, 1]).sum()
    angle = math.atan2(cross, (here * there).sum())
    cosine, sine = math.cos(angle), math.sin(angle)
    matrix = np.array([[cosine, sine], [-sine, cosine]])
    return Rotation(angle, matrix, float(np.abs(here @ matrix.T - there).max()))


# What they change


@dataclass(frozen=True)
class Answers:
    """What a model answers in one pass. Rows are positions of the predicted side without padding.

    wanted             probability of the token that comes next in it, (row,), eos behind the
                       last (NaN for a model without eos); of a masked token, the token that
                       stands there; where a class is predicted the probability of each, (class,)
    best, probability  the likeliest answer and its probability, (row,)

    A model that makes a vector of a text answers nothing: there are no rows.
    """

    wanted: np.ndarray
    best: np.ndarray
    probability: np.ndarray


def answers(trace: Trace | LongTrace) -> Answers:
    side = trace.predicted
    if side.predicts == "embedding":
        return Answers(np.zeros(0), np.zeros(0, int), np.zeros(0))
    if side.predicts == "class":
        ids, shares = trace.most_probable()
        return Answers(shares[0][ids[0].argsort()], ids[:, 0], shares[:, 0])
    real = without_padding(trace.texts[side.name])
    ids, shares = trace.most_probable(1)
    return Answers(np.exp(trace.log_probabilities[:real]), ids[:real, 0], shares[:real, 0])


@dataclass(frozen=True)
class Effect:
    """What other positions do to one pass: how much each head is moved, kind of attention →
    (layers, heads) (see head_metrics.total_variation), and what the model answers then."""

    moved: dict[str, np.ndarray]
    answers: Answers


def with_positions(run: Run, kind: str, shift: int = 0) -> Run:
    """The same with positions of another kind in all its texts."""
    positioned = Positioned(Scope(ALL), kind, shift if kind == "shifted" else 0)
    return replace(run, changes=(*run.changes, positioned))


def effect(model: nn.Module, before: Trace, kind: str, shift: int = 0) -> Effect:
    """The pass `before` under other positions."""
    now = trace(model, with_positions(before.run, kind, shift))
    moved = {
        kind: total_variation(now.attention[kind], before.attention[kind]) for kind in now.attention
    }
    return Effect(moved, answers(now))


# Words that change places


@dataclass(frozen=True)
class Reordered:
    """A model's first text in its order and in another: row i of `after` is the token that was row
    order[i] of `before`; both are the last vectors of its stack, (position, d_model)."""

    order: tuple[int, ...]
    before: np.ndarray
    after: np.ndarray
    answers_before: Answers
    answers_after: Answers

    @property
    def largest(self) -> float:
        """The largest difference between a number of a token's rows. 0: the rows are the same,
        in another order."""
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
        sides = (torch.tensor(rows, dtype=torch.float64) for rows in (self.after, self.before))
        # Not by a product of matrices: that would leave 1e-4 between equal rows.
        apart = torch.cdist(*sides, compute_mode="donot_use_mm_for_euclid_dist")
        return apart.numpy() / np.linalg.norm(self.before, axis=-1).mean()


def reordered(
    model: nn.Module, run: Run, order: Sequence[int], kind: str = "", shift: int = 0
) -> Reordered:
    """Both orders of the first text's tokens, under positions of a `kind` if one is given. What
    stands around the text, bos, eos and padding, stays where it is."""
    side, first = model.sides()[0], run.texts[0]
    other = first.take(order)
    run = with_positions(run, kind, shift) if kind else run
    passes = [trace(model, replace(run, texts=(text, *run.texts[1:]))) for text in (first, other)]
    rows = [one.final[side.name] for one in passes]
    begins = int(side.begins)
    places = [*range(begins), *(begins + i for i in order)]
    places += range(len(places), len(rows[0]))
    return Reordered(tuple(places), *rows, *map(answers, passes))


def swap(length: int, first: int, second: int) -> tuple[int, ...]:
    """The order of `length` tokens with two of them in each other's place."""
    order = list(range(length))
    order[first], order[second] = order[second], order[first]
    return tuple(order)
