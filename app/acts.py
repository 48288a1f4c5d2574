"""What is done to heads, tokens and cells: each act makes a line of changes of the one before, in a
callback."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from app import session
from app.settings import WITH, WITHOUT
from model.probing import editing
from model.probing.changes import CannotChange, Change, HeadOff, Scope, parse, written
from model.probing.editing import Changes


def change(found: Iterable[Change]) -> None:
    """Other changes than now, in a callback."""
    session.choose(changes=written(found))


def travel(by: int) -> None:
    """Undo the last change, with by = −1, or with 1 redo it, in a callback."""
    session.choose(changes=session.history().go(by))


def act(what: str, **on) -> None:
    """What was done to a head, a token or a cell on the tiles, in a callback. A line of changes
    that cannot be read stays as it is, and a late message, of another model's, changes nothing."""
    with suppress(CannotChange):
        change(ACTS[what](parse(session.values()["changes"]), **on))
        if session.values()["shows"] == WITHOUT:
            session.choose(shows=WITH)


def _switch(now: Changes, kind: str, layer: int, head: int, scope: str = "head") -> Changes:
    """A head, its layer or all of its kind off, or on again; the layer counts among those of its
    kind."""
    return editing.toggled(now, HeadOff(AROUND[scope](_scope(kind, layer, head))))


def _hide(now: Changes, side: str, index: int) -> Changes:
    """A token of a side, by its title, hidden as a key or shown again."""
    sites, sides = session.context().structure.sites, session.context().structure.sides
    names = [one.name for one in sides if one.title == side]
    kinds = dict.fromkeys(site.kind for site in sites if site.key_side in names)
    return editing.hidden(now, kinds, index)


def _paint(
    now: Changes, kind: str, layer: int, head: int, row: int, column: int, allow: bool, scope: str
) -> Changes:
    """A cell of a mask, of the head, its layer or all of its kind."""
    whole = _scope(kind, layer, head)
    return editing.painted(now, AROUND[scope](whole), (row, column), allow)


def _weigh(
    now: Changes, kind: str, layer: int, head: int, row: int, column: int, weight: float
) -> Changes:
    weight = round(min(max(float(weight), 0.0), 1.0), 3)
    return editing.weighed(now, _scope(kind, layer, head), (row, column), weight)


def _scope(kind: str, layer: int, head: int) -> Scope:
    """Raises CannotChange where the model of by now has no such head."""
    site = session.site_of(kind, layer)
    if site is None or head >= site.n_heads:
        raise CannotChange("This model has no such head.")
    return Scope(kind, site.layer, head)


AROUND = {  # what of a model is meant, by the scope of one head
    "head": lambda scope: scope,
    "layer": lambda scope: replace(scope, head=None),
    "kind": lambda scope: Scope(scope.kind),
}
ACTS = {"off": _switch, "hide": _hide, "paint": _paint, "weigh": _weigh}


def add_change(of: str, verb: str) -> None:
    """Add a change of the selected head, its layer or its kind, in a callback; `verb` as on the
    line. A layer is skipped as a whole."""
    here = session.focus()
    with suppress(CannotChange):
        scope = AROUND[of](_scope(**vars(here)))
        if verb == "skip" and scope.head is not None:
            scope = replace(scope, head=None)
        change((*parse(session.values()["changes"]), *parse(f"{scope}={verb}")))
