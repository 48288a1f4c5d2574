"""An axis of a picture."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headlight.app.theme import FONT

MOST_LABELS = 64  # more would overlap on a projector


@dataclass(frozen=True)
class Axis:
    """An axis of a figure: its title, and one label per position; `hover`: what is said of each
    under the pointer, if that is more."""

    title: str
    labels: Sequence[str]
    hover: Sequence[str] = ()

    def layout(self, room: int) -> dict:
        """Tick settings for an axis about `room` pixels long. Positions are numbers because Plotly
        merges equal labels into one row."""
        every = max(1, -(-len(self.labels) // MOST_LABELS))
        shown = range(0, len(self.labels), every)
        size = int(np.clip(0.85 * room / max(1, len(shown)), 9, FONT))
        return {
            "title": {"text": self.title, "font": {"size": FONT}},
            "tickmode": "array",
            "tickvals": list(shown),
            "ticktext": [plain(self.labels[i]) for i in shown],
            "tickfont": {"size": size},
            "showgrid": False,
            "zeroline": False,
        }


def plain(text: str) -> str:
    """Escapes text for Plotly, which interprets tags such as `<b>`."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
