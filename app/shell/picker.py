"""The menu that selects a head, for pages that show one head and not all of them."""

import streamlit as st

from headlight.app.shell.layout import draw_settings, head_label, menu


def draw() -> None:
    """Kind of attention, layer and head in one menu, named by what is selected."""
    with menu(head_label(), "head_picker") as picker:
        if not picker.open:
            return
        with st.container(horizontal=True):
            draw_settings(("kind", "layer", "head"))
