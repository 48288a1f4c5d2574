"""A head's queries and keys in the plane: the two principal components of both together."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Plane:
    """The plane along which vectors differ most.

    axes       (2, width): directions at right angles, of length 1
    explained  (2,): the share of all variance that lies along each
    """

    axes: np.ndarray
    explained: np.ndarray

    def put(self, vectors: np.ndarray) -> np.ndarray:
        """(.., width) → (.., 2). PCA centres vectors to find the plane, but not here: zero stays
        zero, so that a dot product in the plane is part of the one in full."""
        return vectors.astype(np.float64) @ self.axes.T


def principal_plane(vectors: np.ndarray) -> Plane:
    """The plane of the first two principal components of vectors (vector, width)."""
    vectors = vectors.astype(np.float64)
    _, singular, axes = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    variance = singular**2
    # The sign of a direction is arbitrary: make its largest component positive.
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    axes = np.where(largest < 0, -axes, axes)
    # A single vector, or vectors of width 1, have only one axis: the second is zero.
    axes, variance = np.pad(axes, ((0, 1), (0, 0))), np.pad(variance, (0, 1))
    # Without variance, nothing is lost.
    total = variance.sum()
    return Plane(axes[:2], variance[:2] / total if total else np.array([1.0, 0.0]))


@dataclass(frozen=True)
class Answer:
    """One query's scores and weights for all keys, each (key,).

    scores    q·k / √d_head before the mask, as the head computes them
    in_plane  the same of what the plane keeps of q and k
    weights   the head's attention weights; 0: the query may not attend to that key
    """

    scores: np.ndarray
    in_plane: np.ndarray
    weights: np.ndarray

    def off(self) -> np.ndarray:
        """The error of the plane's scores for each key that the query may attend to."""
        return np.abs(self.in_plane - self.scores)[self.weights > 0]

    def total_variation(self) -> float:
        """Total variation distance between the weights and those of the scores in the plane."""
        may = self.weights > 0
        if not may.any():
            return 0.0
        parts = np.exp(self.in_plane[may] - self.in_plane[may].max())
        return float(np.abs(parts / parts.sum() - self.weights[may]).sum() / 2)


def answer(
    plane: Plane, query: np.ndarray, key: np.ndarray, scores: np.ndarray, weights: np.ndarray
) -> Answer:
    """One query (d_head,) and all keys (key, d_head), with the head's own scores and weights."""
    in_plane = plane.put(key) @ plane.put(query) / np.sqrt(query.shape[-1])
    return Answer(scores, in_plane, weights)
