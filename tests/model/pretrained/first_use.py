"""What is called in a process under limits: a module that imports next to nothing besides."""

import numpy as np

from headlight.model.checkpoint import load


def used(folder, source: str, target: str) -> None:
    """What a page does first. Raises CannotLoad and CannotRead."""
    checkpoint = load(folder)
    trace = checkpoint.trace(source, target if len(checkpoint.model.sides()) > 1 else None)
    for weights in trace.attention.values():
        sums = weights.sum(axis=-1)
        assert (np.isclose(sums, 1, atol=1e-4) | (sums == 0)).all()
