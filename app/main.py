"""The router: `streamlit run app/main.py`."""

import sys
from pathlib import Path

import streamlit as st

# `streamlit run` puts this folder on the path; our packages live in the one above it. With both
# there, `state` and `app.state` would be two modules with two caches.
HERE = Path(__file__).resolve().parent
if str(HERE) in sys.path:
    sys.path[sys.path.index(str(HERE))] = str(HERE.parent)

from app.sidebar import sidebar  # noqa: E402

st.set_page_config(
    page_title="Headlight", page_icon=str(HERE.parent / "assets" / "icon.svg"), layout="wide"
)

page = st.navigation(
    [
        st.Page(
            HERE / "views" / "attention.py",
            title="Attention",
            icon=":material/grid_on:",
            default=True,
            help="Where every head of every layer looks, for your sentence.",
        ),
        st.Page(
            HERE / "views" / "positions.py",
            title="Positions",
            icon=":material/timeline:",
            help="How the model knows the order of words: the positional encodings it adds.",
        ),
        st.Page(
            HERE / "views" / "compare.py",
            title="Compare",
            icon=":material/compare_arrows:",
            help="The same weights in torch.nn.Transformer, side by side.",
        ),
    ],
    position="top",
)

# A projector has few pixels: spend them on pictures.
st.html("<style>.stMainBlockContainer { padding: 3.5rem 2rem 2rem; }</style>")
sidebar()
st.header(page.title, anchor=False)
page.run()
