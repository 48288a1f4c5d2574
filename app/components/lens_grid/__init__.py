"""The logit lens as a grid: what a model would predict after each layer."""

from collections.abc import Callable, Sequence

import numpy as np

from headlight.app.components.registered import Picture
from headlight.app.theme import FOCUS, PAPER, PRIMARY
from headlight.model.analysis.residual import Lens

_picture = Picture("lens_grid", "button")


def lens_grid(
    lens: Lens,
    answers: Sequence[Sequence[str]],
    after: Sequence[str],
    row: int,
    on_row: Callable[[int], None],
) -> None:
    """`answers` (depth, row): the likeliest answers of the `lens`, by name; `after`: what each row
    has read; `row`: the selected one. `on_row` gets the row of a cell that is clicked."""
    data = {
        "answers": answers,
        "after": list(after),
        "row": row,
        **{
            name: np.round(getattr(lens, name), 4).tolist()
            for name in ("probability", "final", "rank", "settled")
        },
        "focus": FOCUS,
        "palette": {scheme: [PAPER[scheme], PRIMARY[scheme]] for scheme in PAPER},
    }
    _picture(data, "lens", row=on_row)
