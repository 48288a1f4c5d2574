"""Settings that are seldom changed: projector, device; all models."""

import streamlit as st

from headlight.app.server import lan
from headlight.app.state import catalog, widgets
from headlight.app.wording import formats


def draw_more_menu() -> None:
    """A menu of settings that are seldom changed."""
    more = st.popover(
        "",
        icon=":material/more_vert:",
        help="Projector, device, all models",
        key="more",
        on_change="rerun",
    )
    with more:
        widgets.draw("projector")
        widgets.draw("device")
        if more.open and (address := lan.class_address()):
            st.markdown(f"For the class: **{address}**")
            st.image(lan.qr_code(address), width=260)
        if more.open:
            for name, card in catalog.cards().items():
                st.markdown(f"**{formats.escaped(name)}**: {card}")
