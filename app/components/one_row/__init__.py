"""One row of a head, from its scores to its output, as bars. The whole head is sent at once: rows,
stops and the scaling are chosen in the browser, which keeps them in the address."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headlight.app import theme
from headlight.app.components.registered import registered

KEY = "one_row"

_mount = registered("one_row", "button")


@dataclass(frozen=True)
class ScoredHead:
    """The rows of one head. `keys`: tokens; `rows`: what the rows are called; `moments`:
    both words that each row stands for, or nothing; `opening`: the row that is shown until one is
    chosen; `passed_over`: the row that would be, but for having nearly all weight on one key, or
    −1. `scores`: q·k, (query, key); `mask`: True = may attend; `values`: (key, d_head). Where a
    model has weights alone, `values` is None, and `scores` holds them. `differing`: rows whose
    weights are others than the softmax of these scores. `code`: the lines of Python of each stop;
    `notes`: what else is to be said."""

    keys: Sequence[str]
    rows: Sequence[str]
    moments: Sequence[tuple[str, str]]
    opening: int
    passed_over: int
    scores: np.ndarray
    mask: np.ndarray
    values: np.ndarray | None = None
    differing: Sequence[int] = ()
    code: Sequence[str] = ()
    notes: Sequence[str] = field(default_factory=list)


def one_row(shown: ScoredHead, palette: theme.Palette) -> None:
    """Draw the picture, with weights in a scale of theme.py."""
    _mount(data=pack(shown, palette), key=KEY)


def pack(shown: ScoredHead, palette: theme.Palette) -> bytes:
    """Length of the header (4 bytes, little-endian), header (JSON), scores and values as float32,
    and the mask, a byte each."""
    values = np.zeros((len(shown.keys), 0)) if shown.values is None else shown.values
    texts = {
        name: value
        for name, value in vars(shown).items()
        if name not in ("scores", "mask", "values")
    }
    header = texts | {
        "width": values.shape[1],
        "weights_alone": shown.values is None,
        "palette": palette,
        "differences": theme.DIFFERENCES,
        "focus": theme.FOCUS,
    }
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    numbers = (np.ascontiguousarray(part, np.float32).tobytes() for part in (shown.scores, values))
    return b"".join(
        [len(head).to_bytes(4, "little"), head, *numbers, shown.mask.astype(np.uint8).tobytes()]
    )
