"""Other implementations: the systems that Headlight grew out of, and the way from the paper to
today's models."""

import streamlit as st

from headlight.app.state import session, widgets
from headlight.app.state.options import LINEAGE
from headlight.app.views import _lineage, _systems

projector = session.values()["projector"]
controls = st.container(key="controls", horizontal=True, vertical_alignment="bottom", gap="large")
chosen = widgets.draw("implementations", controls)
(_lineage if chosen == LINEAGE else _systems).draw(controls, projector)
