"""A Plotly figure on the page: ink that suits the theme, the download button, words for those
who cannot see it."""

import plotly.graph_objects as go
import streamlit as st

INK = {"light": "#1b1c1f", "dark": "#f4f5f7"}


def figure(drawn: go.Figure, key: str, alt: str) -> None:
    ink = INK[st.context.theme.type or "light"]
    drawn.update_layout(font_color=ink)
    drawn.update_xaxes(tickfont_color=ink, title_font_color=ink)
    drawn.update_yaxes(tickfont_color=ink, title_font_color=ink)
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
