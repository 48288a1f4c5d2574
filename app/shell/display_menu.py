"""The menu Display: how weights are shown."""

from contextlib import suppress

from headlight.app import selection
from headlight.app.results import passes
from headlight.app.shell import sweeps
from headlight.app.state import messages
from headlight.model.probing.changes import CannotChange
from headlight.model.probing.trace import CannotRead

READING = ("pattern", "show", "scale", "order", "average", "special", "words", "least")


def draw_score_menu() -> None:
    with suppress(messages.NothingToShow, CannotChange, CannotRead):  # the page says why
        run = selection.run()
        sweeps.draw_score(passes.trace_of(selection.view(run), run))
