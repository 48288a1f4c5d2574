"""A Plotly figure on the page: ink that suits the theme, the download button, words for those
who cannot see it."""

import plotly.graph_objects as go
import streamlit as st

from app.theme import INK, PROJECTOR


def figure(drawn: go.Figure, key: str, alt: str, projector: bool) -> None:
    """`projector`: with large letters."""
    ink = INK[st.context.theme.type or "light"]
    drawn.update_layout(font_color=ink)
    drawn.update_xaxes(tickfont_color=ink, title_font_color=ink)
    drawn.update_yaxes(tickfont_color=ink, title_font_color=ink)
    if projector:
        _enlarge(drawn)
    drawn.update_coloraxes(colorbar_tickfont_color=ink, colorbar_title_font_color=ink)
    st.plotly_chart(
        drawn,
        key=key,
        alt=alt,
        config={
            "displaylogo": False,
            "toImageButtonOptions": {"format": "svg", "filename": key},
        },
    )


def _enlarge(drawn: go.Figure) -> None:
    """Letters for the last row; the picture grows with them."""
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
            font.size *= PROJECTOR
    layout.height *= 1.2
