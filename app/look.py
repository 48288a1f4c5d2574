"""How the tiles are shown: what is chosen, and what is changed in the model."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app import compute, effects, labels, session, theme
from app.catalog import ModelView
from app.components.packing import Look, order_by
from model.analysis import head_metrics
from model.masks import Masks
from model.probing.changes import HeadOff, Hidden, Scope
from model.probing.run import Run


def look(model_view: ModelView, run: Run) -> Look:
    """How all heads are shown; what their order needs is computed here."""
    chosen, read_as = session.values(), session.reading()
    return Look(
        focus=vars(session.focus()),
        show=chosen["show"],
        scale=chosen["scale"],
        order=order_by(
            chosen["order"],
            lambda: compute.measured_of(model_view, run),
            lambda: compute.change_of(model_view, run),
            lambda name: effects.by_head(
                model_view,
                replace(run, other=session.other_run()),
                name,
                effects.score(model_view, run),
            ),
        ),
        average=read_as.average,
        least=read_as.least,
        palette=theme.DIFFERENCES if session.less_run() else theme.WEIGHTS,
        colour=theme.FOCUS,
        faded=_faded(model_view, run),
        off=_off(run),
        marked=_marked(run),
        hidden=_hidden(run),
        moved=_moved(model_view, run),
        acts=not (read_as.average or read_as.words) and chosen["special"] == "show",
        said=_said(model_view, run),
        session=session.memo()["session"],
        heard=session.memo()["heard"],
    )


def _said(model_view: ModelView, run: Run) -> str:
    """How much attention leaks where a mask is off."""
    if run.masks == Masks() and not run.changes:
        return ""  # nothing does
    trace = compute.trace_of(model_view, run)
    return " ".join(labels.leak(trace, found) for found in compute.leaks_of(model_view, run))


def _faded(model_view: ModelView, run: Run) -> dict[str, list[int]]:
    """Kind → the tiles (layer × heads + head) of heads that do not have the chosen pattern."""
    pattern = session.values()["pattern"]
    if pattern == head_metrics.ANY:
        return {}
    measured = compute.measured_of(model_view, run)
    matching = head_metrics.heads_with(measured, pattern)
    return {
        kind: [
            layer * shape[1] + head
            for layer, head in np.ndindex(shape)
            if (layer, head) not in matching[kind]
        ]
        for kind, shape in ((kind, one.rows["entropy"].shape) for kind, one in measured.items())
    }


def _off(run: Run) -> dict[str, list[int]]:
    """Kind → the tiles of heads that are switched off."""
    return _tiles([one.scope for one in run.changes if isinstance(one, HeadOff)])


def _marked(run: Run) -> dict[str, list[int]]:
    """Kind → the tiles of heads that are changed otherwise."""
    changes = (one for one in run.changes if "attention" in one.parts)
    return _tiles([one.scope for one in changes if not isinstance(one, HeadOff | Hidden)])


def _hidden(run: Run) -> dict[str, list[int]]:
    """Title of a side → the tokens that are hidden wherever they are keys."""
    hides = [one for one in run.changes if isinstance(one, Hidden)]
    sites, found = session.context().structure.sites, {}
    for side in session.context().structure.sides if hides else ():
        reads = [site for site in sites if site.key_side == side.name]
        everywhere = [
            {token for one in hides if one.scope.head is None and one.scope.holds(site)
             for token in one.tokens}
            for site in reads
        ]  # fmt: skip
        found[side.title] = sorted(set.intersection(*everywhere)) if everywhere else []
    return found


def _moved(model_view: ModelView, run: Run) -> dict[str, list[float | None]]:
    """Title of the predicted side → by how much the changes move each token's log-probability. A
    row tells of the token behind it."""
    trace = compute.trace_of(model_view, run)
    if not run.changes or trace.predicted.predicts != "next token":
        return {}
    moved = compute.moved_of(model_view, run)
    rows = [None, *(round(float(x), 3) if np.isfinite(x) else None for x in moved)]
    return {trace.predicted.title: rows[: len(trace.texts[trace.predicted.name].ids)]}


def _tiles(scopes: Sequence[Scope]) -> dict[str, list[int]]:
    """Kind → the tiles (layer × heads + head) that some scope holds."""
    return {
        kind: [
            layer * site.n_heads + head
            for layer, site in enumerate(sites)
            for head in range(site.n_heads)
            if any(scope.holds(site) and scope.head in (None, head) for scope in scopes)
        ]
        for kind, sites in session.context().structure.kinds.items()
        if scopes
    }
