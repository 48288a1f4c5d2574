"""The stage: what the heads attend to, from all of them down to the scores of one row."""

from headlight.app import selection
from headlight.app.results.shown import Shown
from headlight.app.shell import frame, stage
from headlight.app.state import session
from headlight.app.state.options import OTHER
from headlight.app.text import notices
from headlight.model.analysis.domain import Domain


def page() -> None:
    shown, former = shown_and_former()
    trace = shown.trace
    for side, typed in zip(trace.sides.values(), selection.typed_texts(), strict=False):
        for sentence in notices.notices(side.title, typed, trace.texts[side.name]):
            frame.notices().info(sentence)
    stage.draw(shown, former)
    # It may take another pass; the picture need not wait for it.
    card = shown.view.checkpoint.card
    domain = Domain.of_card(card)
    if domain and selection.plain_run().is_unlike(domain):
        frame.notices().info(notices.unlike_training(domain, card))


def shown_and_former() -> tuple[Shown, Shown | None]:
    """What is shown, with all changes, and what it is compared with: the run before them, or that
    of the sentence that another one is compared with. Raises CannotRead and CannotChange."""
    other = selection.other_run() if session.values()["shows"] == OTHER else None
    if other:
        return selection.shown(other), selection.shown(selection.run(changed=False))
    shown = selection.shown(selection.run(changed=True))
    return shown, stage.former(shown)
