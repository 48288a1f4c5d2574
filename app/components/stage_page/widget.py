"""The stage as a widget of a notebook with a kernel: the selected head and cell are traits.

widget = show(trace).widget
widget.head  # ("cross", 3, 3), counted from 1 as on the screen
widget.head = ("cross", 1, 2)
widget.observe(print, "head")

Tried in JupyterLab 4.6 and marimo 0.25 (as mo.ui.anywidget(widget)), with anywidget 0.11.
"""

from collections.abc import Callable
from functools import cache

from headlight.app.components.scripts import read
from headlight.model.extras import of_extra


@cache
def widget_class() -> type:
    """The page of a figure, with what is selected in it. `head`: kind, layer and head; `cell`: row
    and column, 0 where none is selected. Its first argument raises ValueError for a head that is
    not there. Raises ImportError without anywidget."""
    with of_extra("A widget"):
        import anywidget
        from traitlets import Int, Tuple, Unicode, validate

    class StageWidget(anywidget.AnyWidget):
        _esm = read("stage_page/widget.js")
        page = Unicode().tag(sync=True)
        title = Unicode().tag(sync=True)
        height = Int(640).tag(sync=True)
        head = Tuple(Unicode(), Int(), Int()).tag(sync=True)
        cell = Tuple(Int(), Int(), default_value=(0, 0)).tag(sync=True)

        def __init__(self, check: Callable[[str, int, int], object], **traits):
            self._check = check
            super().__init__(**traits)

        @validate("head")
        def _is_there(self, proposed):
            self._check(*proposed["value"])
            return proposed["value"]

    return StageWidget
