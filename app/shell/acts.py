"""What was done to the model, act by act, as badges and findings name it."""

from collections.abc import Callable
from contextlib import suppress

from headlight.app import selection
from headlight.app.state import session
from headlight.app.state.messages import NothingToShow
from headlight.app.text import part_names
from headlight.model.probing.changes import CannotChange, Change, Hidden, Scope
from headlight.model.probing.editing import Changes
from headlight.model.probing.trace import CannotRead, read_of


def acts(changes: Changes, shown: Callable[[str], str] = str) -> list[tuple[str, Changes]]:
    """A name for each act, and the changes that it made: one that hides a token hides it in every
    part that reads the text. `shown`: how a token is written."""
    of_kind = session.context().known.kinds
    keys = _keys(shown) if any(isinstance(change, Hidden) for change in changes) else {}
    found: dict[object, list[Change]] = {}
    for change in changes:
        kind = change.scope.kind
        is_hidden = isinstance(change, Hidden) and kind in of_kind and change.scope == Scope(kind)
        side = of_kind[kind][0].key_side if is_hidden else None
        found.setdefault((side, change.what()) if side else change, []).append(change)
    named = []
    for group in found.values():
        words = keys.get(group[0].scope.kind, ())
        name = group[0].in_words(words) if len(group) > 1 else part_names.chip(group[0], words)
        named.append((name[:1].upper() + name[1:], tuple(group)))
    return named


def _keys(shown: Callable[[str], str]) -> dict[str, list[str]]:
    """Kind of attention → the tokens that are attended to; empty without a text."""
    if not session.values()["line"]:
        return {}
    with suppress(CannotRead, CannotChange, NothingToShow):  # the page says why
        run = selection.run(changed=True)
        texts = read_of(selection.view(run).model, run)
        return {
            kind: [shown(token) for token in texts[site.key_side].tokens]
            for kind, (site, *_) in session.context().known.kinds.items()
        }
    return {}
