"""What if, as cards below the finding: what each act on the selection would give, before it is
done. A card's act, its preview and its click share one function, edits.settings_after."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import streamlit as st

from headlight.app import selection
from headlight.app.components.head_grid import head_grid_previews
from headlight.app.results import memoize
from headlight.app.server.fair_queue import one_asker
from headlight.app.server.garbage import collect_garbage
from headlight.app.shell import edits, running_lesson
from headlight.app.shell.effect import effect
from headlight.app.shell.layout import concerns
from headlight.app.state import session
from headlight.app.state.messages import NothingToShow
from headlight.app.text import findings
from headlight.model.probing.changes import CannotChange, parse, readable
from headlight.model.probing.trace import CannotRead

PREVIEWS = "previews"
MOST_ACTS = 8  # that a browser may ask about at once
AS_TRAINED = [("back as trained", "")]


def cards() -> dict[str, bool] | None:
    """The acts that the current model allows, other than on a head or a token, and whether each is
    done already; None if nothing can be changed."""
    if not session.context().can_change:
        return None
    chosen, parts = session.values(), session.context().known.parts
    done = readable(chosen["changes"], parts)

    def is_done(line: str) -> bool:
        return all(change in done for change in parse(line))

    found = {"positions": is_done(line)} if readable(line := edits.no_positions(), parts) else {}
    if concerns("causal"):
        found["causal"] = not chosen["causal"]
    return found | {"swap": bool(chosen["other"].strip()), "temperature": is_done(edits.BLUR)}


@st.fragment(key=PREVIEWS)
def draw_previews() -> None:
    """A region without anything to see, which brings the previews that the grid has asked for.
    Alone it goes by the settings as the last run of the page made them valid: the widgets that
    would show others are not drawn here."""
    notes = session.memo()
    acts, notes.acts = notes.acts, []
    with one_asker():
        head_grid_previews(previews(acts) if acts else None, on_ask=_ask)
    if not session.is_running():
        collect_garbage()


def _ask(acts: Sequence[dict[str, Any]]) -> None:
    session.memo().acts = list(islice(acts, MOST_ACTS))


def previews(acts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each act, as edits.edit takes it, what would be said of its effect: `said`, `brief`,
    `now` and `rest` of an Effect; or `why` it cannot be done. Ends early when others would have to
    wait; empty for a text that takes long, or while a lesson asks something."""
    found = []
    try:
        is_long = memoize.token_count(selection.run(changed=False)) >= memoize.SHORT
    except (CannotChange, CannotRead, NothingToShow):
        return []
    if is_long or running_lesson.veils():
        return []
    for act in acts:
        if not memoize.QUEUE.is_free:
            break
        try:
            with session.supposing(**edits.settings_after(**act)):
                given = effect()
                said = findings.would(given.said)
                parts = {"brief": given.brief or AS_TRAINED, "now": given.now, "rest": given.rest}
                found.append({"said": said} | parts)
        except (CannotChange, CannotRead) as error:
            found.append({"why": str(error)})
    return found
