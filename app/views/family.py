"""Other ways to build it: the systems that Headlight grew out of, and the line from the paper to
today's models."""

import streamlit as st

from app import session
from app.settings import LINEAGE
from app.views import _lineage, _systems

projector = session.values()["projector"]
controls = st.container(key="controls", horizontal=True, vertical_alignment="bottom", gap="large")
chosen = session.draw("implementations", controls)
(_lineage if chosen == LINEAGE else _systems).draw(controls, projector)
