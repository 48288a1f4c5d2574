"""All heads of a trace in a Jupyter notebook, without a server:

from headlight.model import load
from headlight.app.notebook import show

show(load("en-de").trace("A dog runs."))
"""

import html
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headlight.app.components.grid_page import grid_page
from headlight.app.components.grid_widget import widget_class
from headlight.app.components.packing import GridOptions, answers_of, pack_trace
from headlight.app.theme import FOCUS, WEIGHTS
from headlight.model.analysis.reading import Reading
from headlight.model.probing.trace import Trace
from headlight.model.recording.live import record
from headlight.model.recording.recording import Recording

HEIGHT = 640  # pixels, until the page in the frame reports its height


@dataclass(repr=False)
class NotebookFigure:
    """A figure that notebooks display through `_repr_html_`; `page` is the same figure as an HTML
    file, and `widget` the same figure with what is selected in it as traits. A notebook that is
    opened without its kernel shows the figure, but of a widget only that its model was not found:
    so a figure does not become one by itself."""

    name: str
    page: str
    selected: tuple[str, int, int] = ("", 0, 0)

    @cached_property
    def widget(self):
        """See headlight.app.components.grid_widget. Raises ImportError without anywidget."""
        return widget_class()(page=self.page, title=self.name, height=HEIGHT, head=self.selected)

    def _repr_html_(self) -> str:
        # A frame isolates figures from each other and from the notebook's style.
        return (
            f'<iframe title="{html.escape(self.name)}" srcdoc="{html.escape(self.page)}" '
            f'style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<{self.name}>"


def show(
    what: Any,
    *given: Any,
    kind: str | None = None,
    layer: int | None = None,
    head: int = 1,
    reading: Reading = Reading(),
    theme: str = "auto",
    **more: Any,
) -> NotebookFigure:
    """The app's grid of all heads of a trace, or of whatever else `record` takes, with what that
    takes besides. Layer and head of the selected one count from 1, as on screen;
    the default is the first head of the last kind of attention.

    Raises ValueError for a head that does not exist.
    """
    if isinstance(what, Trace):  # then kind, layer and head may stand without their names
        trace = what
        chosen_head: Any = (*given, *(kind, layer, head)[len(given) :])
        kind, layer, head = chosen_head
    else:
        trace = record(what, *given, **more)
    kind = list(trace.attention)[-1] if kind is None else kind
    numbers = [site.layer + 1 for site in trace.kinds.get(kind, ())]
    layer = next(iter(numbers), 1) if layer is None else layer
    if layer not in numbers or not 1 <= head <= trace.attention[kind].shape[1]:
        there_are = ", ".join(
            f"{name} ({weights.shape[0]} layers of {weights.shape[1]} heads)"
            for name, weights in trace.attention.items()
        )
        raise ValueError(f"There is no {kind} layer {layer} head {head}; there are {there_are}")
    chosen = GridOptions(
        focus={"kind": kind, "layer": numbers.index(layer), "head": head - 1},
        show="all",
        scale="linear",
        order={},
        average=reading.average,
        least=reading.least,
        palette=WEIGHTS,
        colour=FOCUS,
    )
    name = "What every head attends to"
    answers = answers_of(trace, trace.outputs) if isinstance(trace, Recording) else None
    page = grid_page(pack_trace(trace, reading, answers), chosen, name, theme)
    return NotebookFigure(name, page, (kind, layer, head))
