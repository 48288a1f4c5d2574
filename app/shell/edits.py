"""Callbacks that edit the changes: switch a head off, hide a token, paint a mask, set a weight."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from headlight.app import selection
from headlight.app.results import word_results
from headlight.app.results.shown import Shown
from headlight.app.state import session
from headlight.app.state.options import OTHER, THIS
from headlight.app.state.session import choose, context, values
from headlight.model.probing import editing
from headlight.model.probing.changes import (
    VERBS,
    CannotChange,
    Change,
    HeadOff,
    Scope,
    parse,
    readable,
    written,
)
from headlight.model.probing.editing import Changes
from headlight.model.probing.sites import Place
from headlight.model.probing.trace import CannotRead


def set_changes(changes: Iterable[Change]) -> None:
    """Replace the changes. A callback."""
    session.choose(changes=written(changes))


def undo_or_redo(by: int) -> None:
    """Undo (by = −1) or redo (by = 1) one change, or one translation that became the target. A
    callback."""
    _, before = session.history().state
    changes, target = session.history().go(by)
    session.choose(changes=changes)
    if target != before:
        session.decode_target(target)


def edit(what: str, **on) -> None:
    """Apply an edit made on the tiles to a head, a token or a cell. A callback. Changes that cannot
    be parsed are left as they are, and a late message from another model is ignored."""
    with suppress(CannotChange, CannotRead):
        session.choose(**settings_after(what, **on))


def settings_after(what: str, **on) -> dict[str, Any]:
    """The settings that an edit chooses. Raises CannotChange and CannotRead."""
    chosen = session.values()
    if what == "swap":
        return _swap_word(**on)
    if what == "exchange":
        return _exchange_words(**on)
    if what == "causal":
        given = {"causal": not chosen["causal"]}
    else:
        given = {"changes": written(EDITS[what](parse(chosen["changes"]), **on))}
    # What is shown must be what was changed.
    return given | {"shows": THIS}


def _swap_word(index: int) -> dict[str, Any]:
    """A comparison with the same sentence in which one token is another word, or its end; `index`
    is that of the token in the first text that the model reads."""
    if session.values()["other"].strip():
        return {"other": ""}
    plain = selection.run(changed=False)
    line = word_results.with_similar_word(Shown(selection.view(), plain), selection.text(), index)
    if line is None:
        raise CannotChange("No similar word is known.")
    return {"other": line, "shows": OTHER}


def _exchange_words(index: int, beside: int) -> dict[str, Any]:
    """A comparison with the same sentence in which the words of two of its tokens have changed
    places."""
    shown = Shown(selection.view(), selection.run(changed=False))
    line = word_results.with_words_exchanged(shown, selection.text(), index, beside)
    if line is None:
        raise CannotChange("These two cannot change places.")
    return {"other": line, "shows": OTHER}


def _toggle_head(now: Changes, kind: str, layer: int, head: int, scope: str = "head") -> Changes:
    """Toggle a head, its layer or its kind of attention; `layer` counts the layers of this kind."""
    return editing.toggled(now, HeadOff(SCOPES[scope](_scope(kind, layer, head))))


def _hide_token(now: Changes, side: str, index: int, head: Mapping | None = None) -> Changes:
    """Hide a token as a key, or show it again, everywhere or from one `head`; `side` is the title
    of its side."""
    if head:
        return editing.hidden(now, [_scope(**head)], index)
    sites, sides = session.context().known.sites, session.context().known.sides
    names = [candidate.name for candidate in sides if candidate.title == side]
    kinds = dict.fromkeys(site.kind for site in sites if site.key_side in names)
    return editing.hidden(now, [Scope(kind) for kind in kinds], index)


def _paint_mask(
    now: Changes, kind: str, layer: int, head: int, row: int, column: int, allow: bool, scope: str
) -> Changes:
    """Allow or forbid one cell of the mask: for the head, its layer or its kind of attention."""
    whole = _scope(kind, layer, head)
    return editing.painted(now, SCOPES[scope](whole), (row, column), allow)


def _set_weight(
    now: Changes, kind: str, layer: int, head: int, row: int, column: int, weight: float
) -> Changes:
    weight = round(min(max(float(weight), 0.0), 1.0), 3)
    return editing.weighed(now, _scope(kind, layer, head), (row, column), weight)


def _scope(kind: str, layer: int, head: int) -> Scope:
    """Raises CannotChange if the current model has no such head."""
    site = session.site_of(kind, layer)
    if site is None or head >= site.n_heads:
        raise CannotChange("This model has no such head.")
    return Scope(kind, site.layer, head)


def _toggle_positions(now: Changes) -> Changes:
    """Take the positions out of the first text, or bring them back."""
    return _toggle_line(now, no_positions())


def _toggle_temperature(now: Changes) -> Changes:
    """Flatten the weights of every head, or end that."""
    return _toggle_line(now, BLUR)


def _toggle_line(now: Changes, line: str) -> Changes:
    for change in parse(line):
        now = editing.toggled(now, change)
    return now


def no_positions() -> str:
    """The change that takes the positions out of the first text."""
    return f"{session.context().known.sides[0].title}=positions:none"


BLUR = "all=temperature:4"
SCOPES = {  # "head", "layer" or "kind" → the scope, given that of one head
    "head": lambda scope: scope,
    "layer": lambda scope: replace(scope, head=None),
    "kind": lambda scope: Scope(scope.kind),
}
EDITS = {
    "off": _toggle_head,
    "hide": _hide_token,
    "paint": _paint_mask,
    "weigh": _set_weight,
    "positions": _toggle_positions,
    "temperature": _toggle_temperature,
}


def add_change(of: str, verb: str) -> None:
    """Add a change to the selected head, its layer or its kind of attention; `verb` as `parse`
    reads it. A callback. A change of a whole part, such as a skip, concerns the whole layer."""
    here = session.focus()
    with suppress(CannotChange):
        scope = SCOPES[of](_scope(*here))
        if getattr(VERBS[verb.partition(":")[0]], "whole", False):
            scope = replace(scope, head=None)
        add(f"{scope}={verb}")


def add(change: str) -> None:
    """Add a change, as `parse` reads it. A callback."""
    with suppress(CannotChange):
        set_changes((*parse(session.values()["changes"]), *parse(change)))


def is_off(place: Place) -> bool:
    """Whether a head is switched off by itself."""
    with suppress(CannotChange):
        return HeadOff(_scope(*place)) in parse(session.values()["changes"])
    return False


def keep_valid_changes() -> None:
    """Keep only the changes that can be applied. A callback."""
    choose(changes=written(readable(values()["changes"], context().known.parts)))
