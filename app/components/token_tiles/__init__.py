"""A text as the tokens that a model reads, in tiles; and the merges of one of its words."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headlight.app.components.registered import Picture

MOST_SYMBOLS = 60  # of a row
_picture = Picture("token_tiles")


def row(name: str, symbols: Sequence[str], at: int = -1) -> dict[str, Any]:
    """The symbols of a word after a merge, whose `name` it is; if they are many, those around the
    new one, `at`, -1 for none, `before` and `after` of which others are left out."""
    first = max(0, min(at - MOST_SYMBOLS // 2, len(symbols) - MOST_SYMBOLS))
    shown = symbols[first : first + MOST_SYMBOLS]
    after = len(symbols) - first - len(shown)
    return {"name": name, "symbols": shown, "at": at, "before": first, "after": after}


def token_tiles(
    words: Sequence[tuple[Sequence[tuple[str, int]], int]],
    chosen: int,
    rows: Sequence[Mapping[str, Any]],
    is_done: bool,
    lines: Mapping[str, str],
    notes: Sequence[str],
    on_choose: Callable[[int], None],
) -> None:
    """`words`: each with its tokens and their ids, and what `on_choose` gets if it is clicked, -1:
    it cannot be, as no special token can; `chosen` is that of the framed one. `rows`: its merges,
    the last of which are its tokens if it `is_done`. `lines`: texts by name; `notes`: below."""
    data = {
        "words": [{"tokens": list(tokens), "choice": choice} for tokens, choice in words],
        "chosen": chosen,
        "rows": list(rows),
        "isDone": is_done,
        "lines": [*lines.items()],
        "notes": list(notes),
    }
    _picture(data, "token_tiles", chosen=on_choose)
