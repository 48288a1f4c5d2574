"""How much attention goes to positions that the training masks hide: later tokens, from which the
next one could be copied, and padding."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from headlight.model.probing.long_trace import LongTrace, Weights
from headlight.model.probing.trace import Trace


@dataclass(frozen=True)
class Leak:
    """`shares`: of the weight of each layer, mean over its heads and rows without padding,
    (layers,)."""

    kind: str
    where: str  # "later tokens" or "padding"
    shares: np.ndarray


def leaks(trace: Trace | LongTrace, attention: Mapping[str, Weights] | None = None) -> list[Leak]:
    """All leaks above zero, in the order of the kinds; for a long trace, pass `attention`."""
    if attention is None:
        assert isinstance(trace, Trace)
        attention = trace.attention
    result = []
    for kind, weights in attention.items():
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
        result += [
            Leak(kind, where, of_layers)
            for where, of_layers in zip(places, shares.T, strict=True)
            if of_layers.any()
        ]
    return result
