"""How much attention goes where the masks of training would not let it: to later tokens, from which
the next one could be copied, and to padding, which says nothing."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from model.probing.long_trace import LongTrace, Weights
from model.probing.trace import Trace


@dataclass(frozen=True)
class Leak:
    """`shares`: of the weight of each layer, mean over its heads and rows without padding,
    (layers,)."""

    kind: str
    where: str  # "later tokens" or "padding"
    shares: np.ndarray


def leaks(trace: Trace | LongTrace, attention: Mapping[str, Weights] | None = None) -> list[Leak]:
    """Those that are not zero, in the order of the kinds; `attention` of a long trace is given."""
    found = []
    for kind, weights in (trace.attention if attention is None else attention).items():
        query, key = (np.array(text.roles) == "pad" for text in trace.texts_of(kind))
        later = np.arange(len(key)) > np.flatnonzero(~query)[:, None]
        places = {"padding": np.broadcast_to(key, later.shape)}
        if "causal" in trace.kinds[kind][0].masks:
            places = {"later tokens": later & ~places["padding"]} | places
        shares = np.array(
            [
                [layer[:, ~query].sum(axis=-1, where=cells).mean() for cells in places.values()]
                for layer in weights
            ]
        )
        found += [
            Leak(kind, where, of_layers)
            for where, of_layers in zip(places, shares.T, strict=True)
            if of_layers.any()
        ]
    return found
