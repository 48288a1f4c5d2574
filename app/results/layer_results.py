"""Layers: blocks with their shapes, the residual stream, the logit lens."""

import numpy as np

from headlight.app.results.memoize import cached, nbytes
from headlight.app.results.shown import Shown
from headlight.app.state.progress import reporting
from headlight.model.analysis import architecture, residual
from headlight.model.probing.trace import Trace


def blocks_of(shown: Shown) -> list[architecture.Block]:
    """The model as blocks, with their shapes for these texts."""
    texts = shown.trace.texts
    return architecture.blocks(
        shown.view.model, {side: len(text.ids) for side, text in texts.items()}
    )


@cached(nbytes)
def lens_of(shown: Shown, rows: slice = residual.ALL_ROWS) -> residual.Lens:
    """The logit lens: predictions after each layer, for some rows of the logits."""

    traced = shown.trace
    with reporting("Reading the residual stream"):
        return residual.lens(shown.view.model, traced, rows)


def hidden_of(shown: Shown, stack: str, layer: int) -> np.ndarray | None:
    """The hidden numbers of a feed-forward, see residual.hidden; None for a long text."""
    trace = shown.trace
    side = next(side.name for side in trace.sides.values() if side.stack == stack)
    return (
        residual.hidden(shown.view.model, trace, side, layer) if isinstance(trace, Trace) else None
    )
