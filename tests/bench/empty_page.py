"""The floor of every page: a text, and an answer to it."""

import streamlit as st

st.html(f"<i id='answer'>{st.text_area('Source sentence')}</i>")
