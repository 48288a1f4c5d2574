"""The grid as a widget of a notebook with a kernel: the selected head and cell are traits.

widget = show(trace).widget
widget.head  # ("cross", 3, 3), counted from 1 as on the screen
widget.head = ("cross", 1, 2)
widget.observe(print, "head")
"""

from headlight.app.components.scripts import read

try:
    import anywidget
    import traitlets
    from traitlets import Int, Unicode
except ImportError:  # the extra “notebook”
    anywidget = None


if anywidget:

    class GridWidget(anywidget.AnyWidget):
        """The page of a figure, with what is selected in it. `head`: kind, layer and head; `cell`:
        row and column, 0 where none is selected."""

        _esm = read("grid_widget/index.js")
        page = Unicode().tag(sync=True)
        title = Unicode().tag(sync=True)
        height = Int(640).tag(sync=True)
        head = traitlets.Tuple(Unicode(), Int(), Int()).tag(sync=True)
        cell = traitlets.Tuple(Int(), Int(), default_value=(0, 0)).tag(sync=True)
