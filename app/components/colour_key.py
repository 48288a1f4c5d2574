"""What the colours of a picture mean, in one line above it: scales with their ends, and single
colours."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

import streamlit as st

from headlight.app import theme

PRIMARY_COLOUR = f"light-dark({theme.PRIMARY['light']}, {theme.PRIMARY['dark']})"


@dataclass(frozen=True)
class Scale:
    """A scale of colours from what `low` says to what `high` says."""

    name: str
    palette: theme.Palette
    low: str
    high: str

    def html(self) -> str:
        stops = self.palette
        if isinstance(stops, Mapping):
            both = zip(stops["light"], stops["dark"], strict=True)
            stops = [f"light-dark({light}, {dark})" for light, dark in both]
        colours = f"linear-gradient(to right, {', '.join(stops)})"
        bar = f'<i class="scale" style="background: {colours}"></i>'
        return f"{escape(self.name)} {escape(self.low)} {bar} {escape(self.high)}"


@dataclass(frozen=True)
class Swatch:
    """One colour, and what it means; `border`: of a frame in that colour, as in CSS, such as
    “dashed”."""

    name: str
    colour: str
    border: str = ""

    def html(self) -> str:
        paint = f"border: 2px {self.border}" if self.border else "background:"
        return f'<i style="{paint} {self.colour}"></i> {escape(self.name)}'


def colour_key(*entries: Scale | Swatch) -> None:
    spans = "".join(f"<span>{entry.html()}</span>" for entry in entries)
    st.html(f'<div class="hl-key">{spans}</div>')
