"""What each act on the selection would give, before it is done. An act, its preview and its click
share one function, edits.settings_after."""

from typing import Any

from headlight.app import selection
from headlight.app.results import memoize
from headlight.app.shell import edits, running_lesson
from headlight.app.shell.effect import effect
from headlight.app.shell.layout import concerns
from headlight.app.state import session
from headlight.app.state.messages import NothingToShow
from headlight.app.text import findings
from headlight.model.probing.changes import CannotChange, parse, readable
from headlight.model.probing.trace import CannotRead

AS_TRAINED = [("back as trained", "")]


def cards() -> dict[str, bool] | None:
    """The acts that the current model allows, other than on a head or a token, and whether each is
    done already; None if nothing can be changed."""
    if not session.context().can_change:
        return None
    chosen, known = session.values(), session.context().known
    parts, has_table = known.parts, known.sides[0].table
    done = readable(chosen["changes"], parts)

    def is_done(line: str) -> bool:
        return all(change in done for change in parse(line))

    found = {}
    if has_table and readable(line := edits.no_positions(), parts):
        found["positions"] = is_done(line)
    if concerns("causal"):
        found["causal"] = not chosen["causal"]
    return found | {"swap": bool(chosen["other"].strip()), "temperature": is_done(edits.BLUR)}


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
