"""What of a run is off, hidden or pointed at; and how the files of Export are drawn."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headlight.app import selection, theme
from headlight.app.components.packing import GridOptions, order_by
from headlight.app.results import head_results
from headlight.app.results.shown import Shown
from headlight.app.shell import frame, running_lesson, sweeps
from headlight.app.state import session
from headlight.model.analysis import head_metrics
from headlight.model.probing.changes import HeadOff, Hidden, Scope
from headlight.model.probing.run import Run


def grid_options(shown: Shown) -> GridOptions:
    """The display options; measures that the order of heads needs are computed here."""
    chosen, read_as = session.values(), session.reading()
    return GridOptions(
        focus=session.focus()._asdict(),
        show=chosen["show"],
        scale=chosen["scale"],
        order=order_by(
            chosen["order"],
            lambda: head_results.measured_of(shown),
            lambda: head_results.change_of(shown),
            lambda name: sweeps.by_head(
                replace(shown, run=replace(shown.run, other=selection.other_run())),
                name,
                sweeps.score(shown),
            ),
        ),
        average=read_as.average,
        least=read_as.least,
        palette=session.palette(),
        colour=theme.FOCUS,
        faded=_faded(shown),
        off=off_tiles(shown.run),
        marked=_marked(shown.run),
        hidden=hidden(shown.run),
        cell=session.chosen_cell(),
    )


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


def _faded(shown: Shown) -> dict[str, list[int]]:
    """Kind → tiles (layer × heads + head) of heads without the chosen pattern."""
    pattern = session.values()["pattern"]
    if pattern == head_metrics.ANY:
        return {}
    measured = head_results.measured_of(shown)
    matching = head_results.heads_with(shown, pattern)
    return {
        kind: [
            layer * shape[1] + head
            for layer, head in np.ndindex(shape)
            if (layer, head) not in matching[kind]
        ]
        for kind, shape in (
            (kind, measures.rows["entropy"].shape) for kind, measures in measured.items()
        )
    }


def off_tiles(run: Run) -> dict[str, list[int]]:
    """Kind → tiles of heads that are switched off."""
    return _tiles([change.scope for change in run.changes if isinstance(change, HeadOff)])


def _marked(run: Run) -> dict[str, list[int]]:
    """Kind → tiles of heads with another change."""
    changes = (change for change in run.changes if "attention" in change.parts)
    return _tiles([change.scope for change in changes if not isinstance(change, HeadOff | Hidden)])


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
