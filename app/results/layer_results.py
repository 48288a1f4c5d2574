"""Layers: blocks with their shapes, the residual stream, the logit lens."""

import numpy as np

from headlight.app.results.memoize import nbytes, per_run
from headlight.app.results.passes import trace_of
from headlight.app.state.catalog import ModelView
from headlight.app.state.progress import reporting
from headlight.model.analysis import architecture, residual
from headlight.model.probing.run import Run
from headlight.model.probing.trace import Trace


def blocks_of(view: ModelView, run: Run) -> list[architecture.Block]:
    """The model as blocks, with their shapes for these texts."""
    texts = trace_of(view, run).texts
    return architecture.blocks(view.model, {side: len(text.ids) for side, text in texts.items()})


@per_run(nbytes)
def lens_of(
    view: ModelView, run: Run, written: bool = False, rows: slice = residual.ALL_ROWS
) -> residual.Lens:
    """The logit lens: predictions after each layer, for some rows of the logits; `written` as in
    trace_of."""

    traced = trace_of(view, run, written)
    with reporting("Reading the residual stream"):
        return residual.lens(view.model, traced, rows)


def hidden_of(view: ModelView, run: Run, stack: str, layer: int) -> np.ndarray | None:
    """The hidden numbers of a feed-forward, see residual.hidden; None for a long text."""
    trace = trace_of(view, run)
    side = next(side.name for side in trace.sides.values() if side.stack == stack)
    return residual.hidden(view.model, trace, side, layer) if isinstance(trace, Trace) else None
