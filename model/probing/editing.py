"""Edits changes as the user clicks: each function takes changes and returns new ones. Doing the
same twice undoes it."""

from collections.abc import Iterable
from typing import TypeVar

from headlight.model.probing.changes import Allowed, Change, Forbidden, Hidden, Scope, WeightSet

Changes = tuple[Change, ...]
Cell = tuple[int, int]  # query, key
Verb = TypeVar("Verb", bound=Change)


def toggled(changes: Iterable[Change], change: Change) -> Changes:
    """Add the change, or remove it if it is there."""
    changes = tuple(changes)
    if change in changes:
        return tuple(other for other in changes if other != change)
    return (*changes, change)


def hidden(changes: Iterable[Change], scopes: Iterable[Scope], token: int) -> Changes:
    """With a token hidden as a key in some scopes, or shown again where all of them hide it."""
    changes, scopes = tuple(changes), tuple(scopes)
    now = {scope: _of(changes, Hidden, scope) for scope in scopes}
    hide = not all(hidden and token in hidden.tokens for hidden in now.values())
    for scope, hidden in now.items():
        tokens = {*(hidden.tokens if hidden else ())} - {token} | ({token} if hide else set())
        changes = _replaced(
            changes, hidden, Hidden(scope, tuple(sorted(tokens))) if tokens else None
        )
    return changes


def painted(changes: Iterable[Change], scope: Scope, cell: Cell, allow: bool) -> Changes:
    """With a cell of a mask allowed or forbidden. What undoes an earlier stroke takes it away."""
    changes = tuple(changes)
    verb, other = (Allowed, Forbidden) if allow else (Forbidden, Allowed)
    if (change := _of(changes, other, scope)) and cell in change.cells:
        left = tuple(c for c in change.cells if c != cell)
        return _replaced(changes, change, other(scope, left) if left else None)
    change = _of(changes, verb, scope)
    return _replaced(changes, change, verb(scope, (*(change.cells if change else ()), cell)))


def weighed(changes: Iterable[Change], scope: Scope, cell: Cell, weight: float) -> Changes:
    """With a weight set, which takes the place of one that was set there before."""
    before = [c for c in changes if isinstance(c, WeightSet) and c.scope == scope]
    earlier = next((c for c in before if (c.row, c.column) == cell), None)
    return _replaced(tuple(changes), earlier, WeightSet(scope, *cell, weight))


def _of(changes: Changes, verb: type[Verb], scope: Scope) -> Verb | None:
    """The last change of a class and scope."""
    return next((c for c in reversed(changes) if isinstance(c, verb) and c.scope == scope), None)


def _replaced(changes: Changes, old: Change | None, new: Change | None) -> Changes:
    """With another one in a change's place; without an old one at the end."""
    if old is None:
        return changes if new is None else (*changes, new)
    return tuple(c for one in changes for c in ([new] if one is old else [one]) if c is not None)
