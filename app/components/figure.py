"""A Plotly figure on the page: ink that suits the theme, the download button, words for those
who cannot see it."""

from collections.abc import Callable

import plotly.graph_objects as go
import streamlit as st

from app.theme import INK, LARGER, PICTURE, PROJECTOR, ROW


def figure(
    drawn: go.Figure,
    key: str,
    alt: str,
    projector: bool,
    compact: bool = False,
    on_select: Callable[[], None] | None = None,
) -> None:
    """`projector`: with large letters; `compact`: no higher than a small window has room for below
    the bar, unless its rows would be too low to be told apart; `on_select`: called when a point is
    clicked."""
    ink = INK[st.context.theme.type or "light"]
    letters = {"tickfont": {"color": ink}, "title": {"font": {"color": ink}}}
    named = {"xaxis", "yaxis", *drawn.layout.to_plotly_json()}
    axes = {name: letters for name in named if name.startswith(("xaxis", "yaxis"))}
    axes |= {name: {"colorbar": letters} for name in named if name.startswith("coloraxis")}
    drawn.update_layout(axes | {"font": {"color": ink}})  # at once: each change is checked
    if on_select:  # what is not clicked would fade
        as_is = {"marker": {"opacity": 1}, "textfont": {"color": ink}}
        both = {"selected": as_is, "unselected": as_is}  # Plotly needs both, or neither
        drawn.update_traces(both, overwrite=True)  # to update what is not there takes long
    if projector:
        _enlarge(drawn, LARGER if compact else PROJECTOR)
    if compact:
        _compress(drawn)
    elif projector:
        drawn.layout.height *= 1.2
    st.plotly_chart(
        drawn,
        key=key,
        alt=alt,
        on_select=on_select or "ignore",
        selection_mode="points",
        config={
            "displaylogo": False,
            "toImageButtonOptions": {"format": "svg", "filename": key},
        },
    )


def panel(title: str, drawn: go.Figure, caption: str, key: str, alt: str, projector: bool) -> None:
    """A compact figure under its title, and below it what it is: the picture comes first."""
    with st.container(gap="small"):
        st.subheader(title)
        figure(drawn, key, alt, projector, compact=True)
        st.caption(caption)


def _enlarge(drawn: go.Figure, times: float) -> None:
    """Letters for the last row."""
    layout = drawn.layout
    fonts = [layout.font, layout.hoverlabel.font]
    for axis in (*drawn.select_xaxes(), *drawn.select_yaxes()):
        fonts += [axis.tickfont, axis.title.font]
    for axis in drawn.select_coloraxes():
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
    """Rows as high as there is room for, and letters that fit them."""
    letters = drawn.layout.font.size
    turned = [axis for axis in drawn.select_xaxes() if axis.tickangle == -90]
    longest = max((len(text) for axis in turned for text in axis.ticktext), default=0)
    around = letters * (5 + 0.5 * longest)  # the other axis and its title
    rows = max((len(axis.tickvals or ()) for axis in drawn.select_yaxes()), default=0)
    room = max(PICTURE - around, ROW * rows)
    drawn.layout.height = around + room
    for axis in drawn.select_yaxes():
        if axis.tickvals:
            axis.tickfont.size = min(axis.tickfont.size, 0.9 * room / rows)
