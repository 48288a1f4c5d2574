"""A Plotly figure on the page, in the theme's ink, with a download button and a description for
screen readers."""

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from headlight.app.charts import inks
from headlight.app.theme import DIFFERENCES, INK, INKED, LARGER, PICTURE_HEIGHT, ROW


def figure(
    drawn: go.Figure,
    key: str,
    alt: str,
    projector: bool,
    compact: bool = False,
    fills: bool = False,
    on_select: Callable[[], None] | None = None,
) -> None:
    """`projector`: large text. `compact`: fits below the bar in a small window, unless its rows
    would become too thin. `fills`: as high as its container. `on_select`: called when a point is
    clicked."""
    scheme = st.context.theme.type or "light"
    ink = INK[scheme]
    letters = {"tickfont": {"color": ink}, "title": {"font": {"color": ink}}}
    named = {"xaxis", "yaxis", *drawn.layout.to_plotly_json()}
    axes = {name: letters for name in named if name.startswith(("xaxis", "yaxis"))}
    axes |= {name: {"colorbar": letters} for name in named if name.startswith("coloraxis")}
    drawn.update_layout(axes | {"font": {"color": ink}})  # in one call: each change is validated
    if scheme == "dark":
        _darken(drawn)
    if on_select:  # points that are not selected would fade
        as_is = {"marker": {"opacity": 1}, "textfont": {"color": ink}}
        both = {"selected": as_is, "unselected": as_is}  # Plotly needs both, or neither
        drawn.update_traces(
            both, selector=_selects, overwrite=True
        )  # updating traces that do not exist is slow
    if projector:
        _enlarge(drawn, LARGER)
    if compact:
        _compress(drawn)
    elif projector and not fills:
        layout: Any = drawn.layout
        layout.height *= 1.1
    st.plotly_chart(
        drawn,
        key=key,
        alt=alt,
        height="stretch" if fills else "content",
        on_select=on_select or "ignore",
        selection_mode="points",
        config={
            "displaylogo": False,
            "toImageButtonOptions": {"format": "svg", "filename": key},
        },
    )


def _darken(drawn: go.Figure) -> None:
    """Give scales that have others in the dark those, and keep the numbers over their cells
    readable."""
    coloured: list[Any] = [*drawn.select_coloraxes(), *drawn.select_traces({"type": "heatmap"})]
    for scaled in coloured:
        for palette in (DIFFERENCES, INKED):
            if [colour for _, colour in scaled.colorscale or ()] == palette["light"]:
                scaled.colorscale = palette["dark"]
    for numbers in drawn.select_traces({"mode": "text"}):
        layout: Any = drawn.layout
        stops = [colour for _, colour in layout.coloraxis.colorscale]
        numbers.textfont.color = inks(stops, numbers.meta)


def _selects(trace: go.Trace) -> bool:
    """Whether Plotly knows selected points of a trace."""
    return "selected" in trace


def _enlarge(drawn: go.Figure, times: float) -> None:
    """Text large enough for the last row of a classroom."""
    layout: Any = drawn.layout
    fonts = [layout.font, layout.hoverlabel.font]
    axes: list[Any] = [*drawn.select_xaxes(), *drawn.select_yaxes()]
    scales: list[Any] = [*drawn.select_coloraxes()]
    for axis in axes:
        fonts += [axis.tickfont, axis.title.font]
    for axis in scales:
        fonts += [axis.colorbar.tickfont, axis.colorbar.title.font]
    fonts += [annotation.font for annotation in layout.annotations]
    fonts += [
        layout.legend.font,
        *(text.textfont for text in drawn.select_traces({"type": "scatter"})),
    ]
    for font in fonts:
        if font.size:
            font.size *= times


def _compress(drawn: go.Figure) -> None:
    """Rows as high as the room allows, with text that fits them."""
    layout: Any = drawn.layout
    xs: list[Any] = [*drawn.select_xaxes()]
    ys: list[Any] = [*drawn.select_yaxes()]
    letters = layout.font.size
    turned = [axis for axis in xs if axis.tickangle == -90]
    longest = max((len(text) for axis in turned for text in axis.ticktext), default=0)
    around = letters * (5 + 0.5 * longest)  # the other axis and its title
    rows = max((len(axis.tickvals or ()) for axis in ys), default=0)
    room = max(PICTURE_HEIGHT - around, ROW * rows)
    layout.height = around + room
    for axis in ys:
        if axis.tickvals:
            axis.tickfont.size = min(axis.tickfont.size, 0.9 * room / rows)
