"""The lessons as cards: the covered picture of each, its question, and the steps that are done."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headlight.app import theme
from headlight.app.components.registered import Picture
from headlight.app.text.formats import Parts

_picture = Picture("lesson_cards", "covered")


@dataclass(frozen=True)
class LessonCard:
    """A lesson. `answered` of its `questions`; `right`: so many at the first answer, None before it
    is finished; `step`: the one to go on with, 0 before it is begun; `picture`: as of
    lessons/pictures.json, None where there is none."""

    name: str
    number: int
    title: str
    question: Parts
    minutes: int
    answered: int
    questions: int
    right: int | None
    step: int
    steps: int
    picture: Mapping[str, Any] | None


def lesson_cards(
    cards: Sequence[LessonCard],
    first: str,
    below: int,
    palette: theme.Palette,
    on_start: Callable[[str], None],
) -> None:
    """Draw the cards, that of the lesson `first` wide and before the others. `below`: pixels that
    what stands below them needs. `on_start` gets the name of the lesson whose card is clicked."""
    look = {"palette": palette, "focus": theme.FOCUS, "below": below}
    data = {"cards": [asdict(card) for card in cards], "first": first} | look
    _picture(data, "lesson_cards", start=on_start)
