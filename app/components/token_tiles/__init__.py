"""A text as the tokens that a model reads, in tiles; and the merges of one of its words."""

from collections.abc import Sequence
from typing import Any

from headlight.app.components.registered import Picture

MOST_SYMBOLS = 60  # of a row
# Of `words`, each with its tokens and their ids, and what is told as `chosen` if it is clicked, -1:
# it cannot be, as no special token can; that of the framed one, `chosen`; its merges, `rows`, the
# last of which are its tokens if it `isDone`; `lines`, [name, text]; and `notes` below them.
token_tiles = Picture("token_tiles")


def row(name: str, symbols: Sequence[str], at: int = -1) -> dict[str, Any]:
    """The symbols of a word after a merge, whose `name` it is; if they are many, those around the
    new one, `at`, -1 for none, `before` and `after` of which others are left out."""
    first = max(0, min(at - MOST_SYMBOLS // 2, len(symbols) - MOST_SYMBOLS))
    shown = symbols[first : first + MOST_SYMBOLS]
    after = len(symbols) - first - len(shown)
    return {"name": name, "symbols": shown, "at": at, "before": first, "after": after}
