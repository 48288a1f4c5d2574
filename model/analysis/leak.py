"""How much attention goes where the masks of training would not let it: to later tokens, from which
the next one could be copied, and to padding, which says nothing."""

from dataclasses import dataclass

import numpy as np

from model.probing.trace import Trace


@dataclass(frozen=True)
class Leak:
    """`shares`: of the weight of each layer, mean over its heads and rows without padding,
    (layers,)."""

    kind: str
    where: str  # "later tokens" or "padding"
    shares: np.ndarray


def leaks(trace: Trace) -> list[Leak]:
    """Those that are not zero, in the order of the kinds."""
    found = []
    for kind, weights in trace.attention.items():
        query, key = (np.array(text.roles) == "pad" for text in trace.texts_of(kind))
        rows = weights[:, :, ~query]
        later = np.arange(len(key)) > np.flatnonzero(~query)[:, None]
        places = {"padding": np.broadcast_to(key, later.shape)}
        if "causal" in trace.kinds[kind][0].masks:
            places = {"later tokens": later & ~places["padding"]} | places
        for where, cells in places.items():
            shares = rows.sum(axis=-1, where=cells).mean(axis=(1, 2))
            if shares.any():
                found.append(Leak(kind, where, shares))
    return found
