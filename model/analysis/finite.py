"""Where NaN and infinite values first appear in a run. A weight that is NaN, infinite, or so large
that products overflow spoils everything computed from it."""

from collections.abc import Iterator

import numpy as np

from headlight.model.probing.long_trace import LongTrace
from headlight.model.probing.trace import Trace
from headlight.model.sites import ProbedModel


def begins(trace: Trace | LongTrace) -> str:
    """The first part, in order of computation, whose output has NaN or infinite values, in words;
    "" if there is none."""
    parts = ((name, values) for name, values in _parts(trace) if not np.isfinite(values).all())
    return next((name for name, _ in parts), "")


def parameters_not_finite(model: ProbedModel) -> list[str]:
    """Names of the parameters with NaN or infinite values."""
    return [name for name, p in model.named_parameters() if not p.isfinite().all()]


def _parts(trace: Trace | LongTrace) -> Iterator[tuple[str, np.ndarray]]:
    """Every part that was recorded, in order."""
    if not trace.stream:
        return  # a recording, whose weights were checked when it was made
    for name, side in trace.sides.items():
        yield f"the token embeddings of the {side.title}", trace.token[name]
        yield f"the positions of the {side.title}", trace.table[name]
        stream = trace.stream[name]
        for layer in range(len(side.layers)):
            if isinstance(trace, Trace):
                yield from _inside(trace, name, layer)
            yield f"the output of {side.stack} layer {layer + 1}", stream[layer + 1]
        yield f"the final norm of the {side.title}", trace.final[name]
    is_whole = isinstance(trace, Trace)
    yield "the logits", trace.logits if is_whole else trace.most_probable()[1]


def _inside(trace: Trace, side: str, layer: int) -> Iterator[tuple[str, np.ndarray]]:
    for kind, sites in trace.kinds.items():
        for i, site in enumerate(sites):
            if (site.query_side, site.layer) != (side, layer):
                continue
            where = f"of {site.title}, layer {layer + 1}"
            yield f"the queries {where}", trace.query[kind][i]
            yield f"the keys {where}", trace.key[kind][i]
            yield f"the values {where}", trace.value[kind][i]
            yield f"the scores {where}", trace.scores[kind][i]
            yield f"the weights {where}", trace.attention[kind][i]
            yield f"the output {where}", trace.output[kind][i]
    if side in trace.feed_forward:
        stack = trace.sides[side].stack
        yield f"the feed-forward of {stack} layer {layer + 1}", trace.feed_forward[side][layer]
