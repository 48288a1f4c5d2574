"""The selected head and all heads of its kind as pictures, and all heads as a page of HTML.

Each function takes a View and returns bytes.
"""

from headlight.app.components.stage_page import MANY, stage_page
from headlight.app.export.paper import Figure
from headlight.app.export.view import View
from headlight.app.state import settings


def printed(view: View, whole: bool = False) -> Figure:
    """The selected head; or, `whole`, all heads of its kind."""
    return Figure(view.trace, *view.head, whole=whole, colours=view.settings["colours"])


def head(view: View, ending: str) -> bytes:
    """The selected head with its tokens, as "svg", "png" or "pdf"."""
    return printed(view).drawn(ending, 0.0)


def grid(view: View, ending: str) -> bytes:
    """All heads of its kind, likewise."""
    return printed(view, whole=True).drawn(ending, 0.0)


def page(view: View) -> bytes:
    """The stage, at the selected head, as one HTML file that needs no server and no network."""
    return stage_page(
        view.trace,
        view.head,
        f"{view.settings['model']}: what every head attends to",
        depth="head",
        most=MANY,
        colours=view.settings["colours"],
        done=settings.headers(view.settings),
        off=view.off,
        hidden=view.hidden,
    ).encode("utf-8")
