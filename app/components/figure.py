"""A Plotly figure on the page, in the theme's ink, with a download button and a description for
screen readers."""

from typing import Any

import plotly.graph_objects as go
import streamlit as st

from headlight.app.theme import INK, LARGER


def figure(drawn: go.Figure, key: str, alt: str, projector: bool) -> None:
    """As high as its container; `projector`: in large text."""
    ink = INK[st.context.theme.type or "light"]
    letters = {"tickfont": {"color": ink}, "title": {"font": {"color": ink}}}
    # In one call: each change is validated.
    drawn.update_layout({"xaxis": letters, "yaxis": letters, "font": {"color": ink}})
    if projector:
        _enlarge(drawn, LARGER)
    st.plotly_chart(
        drawn,
        key=key,
        alt=alt,
        height="stretch",
        config={
            "displaylogo": False,
            "toImageButtonOptions": {"format": "svg", "filename": key},
        },
    )


def _enlarge(drawn: go.Figure, times: float) -> None:
    """Text large enough for the last row of a classroom."""
    layout: Any = drawn.layout
    fonts = [layout.font, layout.hoverlabel.font, layout.legend.font]
    axes: list[Any] = [*drawn.select_xaxes(), *drawn.select_yaxes()]
    for axis in axes:
        fonts += [axis.tickfont, axis.title.font]
    for font in fonts:
        if font.size:
            font.size *= times
