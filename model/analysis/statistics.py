"""Statistics that NumPy does not have: correlations of ranks."""

import numpy as np


def ranks(values: np.ndarray) -> np.ndarray:
    """From 1 for the smallest; equal values share the mean of their ranks."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[which]


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's ρ, from -1 to 1; NaN where one of both has no order."""
    x, y = (r - r.mean() for r in (ranks(x), ranks(y)))
    both = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / both) if both else np.nan


def kendall(x: np.ndarray, y: np.ndarray) -> float:
    """Kendall's τ-b, from -1 to 1; NaN where one of both has no order."""
    x, y = (np.sign(np.subtract.outer(v, v)) for v in (np.asarray(x), np.asarray(y)))
    both = np.sqrt((x**2).sum() * (y**2).sum())
    return float((x * y).sum() / both) if both else np.nan
