"""An empty page in the app's frame: what Streamlit by itself moves while it loads."""

from pathlib import Path

import streamlit as st

LOGO = Path(__file__).resolve().parents[2] / "assets" / "logo.svg"


def home() -> None:
    st.html("<i id='empty'>empty</i>")


def other() -> None: ...


st.set_page_config(page_title="Empty", layout="wide")
st.logo(LOGO, size="large")
st.navigation({"See": [st.Page(home)], "Check": [st.Page(other)]}, position="top").run()
