"""The way from the paper to Llama as a line of stops, one for each swapped part."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from headlight.app.components.registered import Picture

_picture = Picture("swap_line", "button")


@dataclass(frozen=True)
class Stop:
    """A model on the line. `name`: of its swap; `year`; `title`: what is new; `parameters` and
    `moved`: what the swap changes, in words; `share`: of the attention weight that moved, of the
    largest on the line, for its bar."""

    name: str
    year: str
    title: str
    parameters: str
    moved: str
    share: float


def swap_line(
    stops: Sequence[Stop], chosen: str, notes: Mapping[str, str], on_choose: Callable[[str], None]
) -> None:
    """Draw the line. `notes`: words on the page → what they mean. `on_choose` gets the name of the
    stop that is clicked."""
    names = {stop.name for stop in stops}
    data = {"stops": [asdict(stop) for stop in stops], "chosen": chosen, "notes": [*notes.items()]}
    _picture(data, "swap_line", chosen=lambda name: name in names and on_choose(name))
