"""What of a run is off, hidden or pointed at."""

from collections.abc import Sequence

from headlight.app.shell import frame, running_lesson
from headlight.app.state import session
from headlight.model.probing.changes import HeadOff, Hidden, Scope
from headlight.model.probing.run import Run


def points_at() -> dict:
    """The query that the step of a lesson is about, if it is a row of the selected kind; or the row
    whose next-token probability a change moved most."""
    kind, structure = session.focus().kind, session.context().known
    if running_lesson.running():
        row = running_lesson.pointed_row()
        index = row[1] if row and row[0] == kind else None
        query = structure.kinds[kind][0].query_side
        titles = [side.title for side in structure.sides if side.name == query]
    else:
        index = frame.effect().row
        titles = [side.title for side in structure.sides if side.predicts == "next token"]
    return {} if index is None else {"side": titles[0], "index": index}


def off_tiles(run: Run) -> dict[str, list[int]]:
    """Kind → tiles of heads that are switched off."""
    return _tiles([change.scope for change in run.changes if isinstance(change, HeadOff)])


def hidden(run: Run) -> dict[str, list[int]]:
    """Title of a side → tokens that are hidden as keys everywhere."""
    hides = [change for change in run.changes if isinstance(change, Hidden)]
    sites, hidden = session.context().known.sites, {}
    for side in session.context().known.sides if hides else ():
        reads = [site for site in sites if site.key_side == side.name]
        everywhere = [
            {token for change in hides if change.scope.head is None and change.scope.holds(site)
             for token in change.tokens}
            for site in reads
        ]  # fmt: skip
        hidden[side.title] = sorted(set.intersection(*everywhere)) if everywhere else []
    return hidden


def _tiles(scopes: Sequence[Scope]) -> dict[str, list[int]]:
    """Kind → tiles (layer × heads + head) covered by one of the scopes."""
    return {
        kind: [
            layer * site.n_heads + head
            for layer, site in enumerate(sites)
            for head in range(site.n_heads)
            if any(scope.holds(site) and scope.head in (None, head) for scope in scopes)
        ]
        for kind, sites in session.context().known.kinds.items()
        if scopes
    }
