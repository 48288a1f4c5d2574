"""Layers: blocks with their shapes, the residual stream, the logit lens."""

from headlight.app.results.memoize import nbytes, per_run
from headlight.app.results.passes import trace_of
from headlight.app.state.catalog import ModelView
from headlight.app.state.progress import reporting
from headlight.model.analysis import architecture, residual
from headlight.model.probing.run import Run


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
