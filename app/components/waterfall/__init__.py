"""A logit as a waterfall: every term a step, from 0 to the logit, and what softmax makes of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headlight.app.components.colour_key import PRIMARY_COLOUR
from headlight.app.components.registered import Picture
from headlight.app.theme import DIFFERENCES, FOCUS

LOWERS = f"light-dark({DIFFERENCES['light'][1]}, {DIFFERENCES['dark'][1]})"

_picture = Picture("waterfall")


@dataclass(frozen=True)
class Rise:
    """A term of the sum. `part`: what it shares with its neighbours in a `layer` (from 0, None
    outside the layers), such as the kind of attention; `is_head`: whether it can be selected."""

    name: str
    value: float
    layer: int | None
    part: str
    is_head: bool


@dataclass(frozen=True)
class Likely:
    """A token (or class) and its probability; `is_asked`: whether the sum is about it."""

    name: str
    probability: float
    is_asked: bool


def waterfall(
    steps: Sequence[Rise],
    total: tuple[str, float],
    answers: Sequence[Likely],
    words: Sequence[str],
    row: int,
    selected: int | None,
    key: str,
    on_row: Callable[[int], None],
    on_head: Callable[[int], None],
) -> None:
    """`total`: the name and the value of what the `steps` add up to; `words`: what each row of the
    logits predicts, none if there is but one row; `row`: the shown one; `selected`: the step of the
    selected head. `on_row` gets the row of a word that is chosen, `on_head` the place of a step."""
    name, value = total
    data = {
        "steps": [vars(step) for step in steps],
        "total": value,
        "name": name,
        "answers": [vars(answer) for answer in answers],
        "words": list(words),
        "row": row,
        "selected": selected,
        "colours": {"focus": FOCUS, "up": PRIMARY_COLOUR, "down": LOWERS},
    }
    _picture(data, key, row=on_row, head=on_head)
