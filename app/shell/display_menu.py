"""The menu Display: how weights are shown."""

from contextlib import suppress

from app import selection
from app.results import passes
from app.shell import sweeps
from app.state import messages
from model.probing.changes import CannotChange
from model.probing.trace import CannotRead

READING = ("pattern", "show", "scale", "order", "average", "special", "words", "least")


def draw_score_menu() -> None:
    with suppress(messages.NothingToShow, CannotChange, CannotRead):  # the page says why
        run = selection.run()
        sweeps.draw_score(passes.trace_of(selection.view(run), run))
