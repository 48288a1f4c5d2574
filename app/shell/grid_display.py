"""The display options of the grid of heads, from the settings and the changes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headlight.app import selection, theme
from headlight.app.components.packing import GridOptions, order_by
from headlight.app.results import head_results
from headlight.app.results.shown import Shown
from headlight.app.shell import frame, palette, running_lesson, sweeps
from headlight.app.shell.acts import only_act
from headlight.app.shell.effect import Effect
from headlight.app.state import session
from headlight.app.text.formats import Parts
from headlight.model.analysis import head_metrics
from headlight.model.probing.changes import HeadOff, Hidden, Scope
from headlight.model.probing.run import Run


def grid_options(shown: Shown) -> GridOptions:
    """The display options; measures that the order of heads needs are computed here."""
    chosen, read_as, veils = session.values(), session.reading(), running_lesson.veils()
    told = frame.effect()
    are_tokens = not read_as.words and chosen["special"] == "show"
    return GridOptions(
        focus=session.focus()._asdict(),
        show=chosen["show"],
        scale=chosen["scale"],
        order={}
        if veils  # numbers over the tiles, and what the effects of an act would tell
        else order_by(
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
        palette=theme.DIFFERENCES if selection.subtracted() else session.palette(),
        colour=theme.FOCUS,
        faded={} if veils else _faded(shown),
        off=off_tiles(shown.run),
        marked=_marked(shown.run),
        hidden=hidden(shown.run),
        moved={} if veils else _moved(shown),
        acts=are_tokens and not read_as.average and session.context().can_change,
        said=() if veils else _finding(told),
        now=() if veils else told.now,
        veil=[vars(veil) for veil in veils],
        points_at=points_at(are_tokens),
        cards=palette.cards(),
        cell=session.chosen_cell(),
        named=True,
        in_lesson=running_lesson.running() is not None,
        session=session.memo().session,
        heard=session.memo().heard,
        opened=session.memo().opened,
    )


def _finding(told: Effect) -> Parts:
    """What a change did, after its name; what the model writes now stands below the texts."""
    if not told.now:
        return told.said
    name = only_act()
    return [(f"{name}. ", "b"), *told.rest] if name else told.rest


def points_at(are_tokens: bool) -> dict:
    """The query that the step of a lesson is about, if it is a row of the selected kind; or the row
    whose next-token probability a change moved most."""
    kind, structure = session.focus().kind, session.context().known
    if running_lesson.running():
        row = running_lesson.pointed_row()
        index = row[1] if row and row[0] == kind else None
        query = structure.kinds[kind][0].query_side
        titles = [side.title for side in structure.sides if side.name == query]
    else:
        index = frame.effect().row if are_tokens else None
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


def _moved(shown: Shown) -> dict[str, list[float | None]]:
    """Title of the predicted side → the change in each token's log-probability. Each row is about
    the next token."""
    trace = shown.trace
    if not shown.run.changes or trace.predicted.predicts != "next token":
        return {}
    moved = shown.moved
    rows = [None, *(round(float(x), 3) if np.isfinite(x) else None for x in moved)]
    return {trace.predicted.title: rows[: len(trace.texts[trace.predicted.name].ids)]}


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
