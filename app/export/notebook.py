"""All heads of a trace in a Jupyter notebook, without a server."""

import html
import reprlib
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from torch import nn

from headlight.app.components.packing import answers_of
from headlight.app.components.stage_page import stage_page
from headlight.app.components.stage_page.widget import widget_class
from headlight.app.export import paper
from headlight.app.theme import WEIGHTS, stops_of
from headlight.model.analysis.reading import Reading
from headlight.model.checkpoint import Changes, Checkpoint
from headlight.model.extras import of_extra
from headlight.model.masks import Masks
from headlight.model.probing.trace import Trace
from headlight.model.recording.live import record
from headlight.model.recording.recording import Recording
from headlight.model.recording.texts import Words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

HEIGHT = 640  # pixels of the frame


@dataclass(repr=False)
class NotebookFigure:
    """A figure that notebooks display through `_repr_html_`; `page` is the same figure as an HTML
    file, and `widget` the same figure with what is selected in it as traits. A notebook that is
    opened without its kernel shows the figure, but of a widget only that its model was not found:
    so a figure does not become one by itself."""

    name: str
    page: str
    selected: tuple[str, int, int]
    printed: paper.Figure

    @cached_property
    def widget(self):
        """See headlight.app.components.stage_page.widget. Raises ImportError without anywidget."""
        check = partial(paper.place_of, self.printed.trace)
        return widget_class()(
            check, page=self.page, title=self.name, height=HEIGHT, head=self.selected
        )

    def save(
        self, path: str | Path, width: str = "column", whole: bool = False, numbers: bool = False
    ) -> str:
        """Write the page as .html, for any browser; or the selected head, or the `whole` of its
        kind, for a paper: as .svg, .pdf or .png, on white, as wide as a "column" (3.25 inches), a
        "page" (6.75), "84mm" or "3.3in", with `numbers` in the cells where they fit. Returns a
        caption. Raises ValueError: a width or an ending that is none, letters that would be too
        small, or a path that cannot be written; and ImportError without matplotlib."""
        path, printed = Path(path), replace(self.printed, whole=whole, numbers=numbers)
        if paper.ending_of(path, (".html", *paper.ENDINGS)) != "html":
            return printed.save(path, width)
        paper.write(path, self.page)
        return printed.caption()

    def to_plotly(self) -> "Figure":
        """The selected head as a figure of Plotly. Raises ImportError without it."""
        with of_extra("A figure of Plotly"):
            from headlight.app import charts
        stops = None if self.printed.minus else stops_of(WEIGHTS[self.printed.colours])
        return charts.attention(*self.printed.cells(), stops)

    def _repr_html_(self) -> str:
        # A frame isolates figures from each other and from the notebook's style.
        return (
            f'<iframe title="{html.escape(self.name)}" srcdoc="{html.escape(self.page)}" '
            f'style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Look(TypedDict, total=False):
    """See `show`."""

    kind: str | None
    layer: int | None
    head: int | None
    minus: Trace | None
    reading: Reading
    theme: str
    colours: str


@overload
def show(
    what: Trace, kind: str | None = ..., layer: int | None = ..., head: int | None = ...,
    *, minus: Trace | None = ..., reading: Reading = ..., theme: str = ..., colours: str = ...,
) -> NotebookFigure: ...  # fmt: skip
@overload
def show(
    what: Checkpoint, text: str, target: str | None = ..., masks: Masks = ..., pad_to: int = ...,
    changes: Changes = ..., **look: Unpack[Look],
) -> NotebookFigure: ...  # fmt: skip
@overload
def show(
    what: nn.Module, tokenizer: Any = ..., text: Any = ..., target: Any = ..., *, inputs: Any = ...,
    tokens: Words = ..., target_tokens: Words = ..., changes: Changes = ..., row: int = ...,
    **look: Unpack[Look],
) -> NotebookFigure: ...  # fmt: skip
@overload
def show(
    what: Any, tokens: Words = ..., target: Words = ..., *, row: int = ..., origin: str = ...,
    partial: bool = ..., **look: Unpack[Look],
) -> NotebookFigure: ...  # fmt: skip


def show(
    what: Any,
    *given: Any,
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    minus: Trace | None = None,
    reading: Reading = Reading(),
    theme: str = "auto",
    colours: str = "ink",
    **more: Any,
) -> NotebookFigure:
    """The stage over all heads of a trace, of a loaded model and a text (with what its `trace`
    takes besides), or of whatever else `record` takes, likewise. Layer and head of the selected one
    count from 1, as on screen; the default is the first head of the last kind of attention. One
    that is given is what one sees first, and if none is, all heads. `minus`: another trace over the
    same texts, which the stage shows as what was before; in other figures its weights are
    subtracted. `colours` of weights: "ink" or "viridis". `reading`: on the stage, how it merges and
    hides tokens; its mean and threshold are for other figures.

    Raises ValueError for a head or colours that do not exist, or texts that differ, and TypeError.

    >>> show(load("copy"), "a b c", layer=2, head=1).save("abc.html")[:43]
    'Weights of cross-attention, layer 2, head 1'
    """
    if colours not in WEIGHTS:
        raise ValueError(f"{colours!r} is not one of {', '.join(map(repr, WEIGHTS))}")
    if isinstance(what, str):
        raise TypeError(f"Load the model first: show(load({reprlib.repr(what)}), text).")
    if isinstance(what, Checkpoint):
        what, given, more = what.trace(*given, **more), (), {}
    if isinstance(what, Trace):  # then kind, layer and head may stand without their names
        if more:
            raise TypeError(f"A trace is shown without {', '.join(more)}.")
        if len(given) > 3:
            raise TypeError("Of a trace, show takes kind, layer and head.")
        trace = what
        chosen_head: Any = (*given, *(kind, layer, head)[len(given) :])
        kind, layer, head = chosen_head
    else:
        trace = record(what, *given, **more)
    is_given = (kind, layer, head) != (None, None, None)
    printed = paper.Figure(
        trace, *paper.place_of(trace, kind, layer, head), minus, reading=reading, colours=colours
    )
    kind, at, number = printed.place
    name = "What every head attends to"
    state = paper.state_of(trace)
    page = stage_page(
        trace,
        printed.place,
        name,
        reading=reading,
        minus=minus,
        answers=answers_of(trace, trace.outputs) if isinstance(trace, Recording) else None,
        depth="head" if is_given else "heads",
        colours=colours,
        theme=theme,
        done=[] if state == paper.UNCHANGED else [state],
    )
    selected = kind, trace.kinds[kind][at].layer + 1, number + 1
    return NotebookFigure(name, page, selected, printed)
