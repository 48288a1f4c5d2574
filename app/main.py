"""The router: `streamlit run app/main.py`."""

import sys
from contextlib import suppress
from pathlib import Path

import streamlit as st

# `streamlit run` puts this folder on the path; our packages live in the one above it. With both
# there, `state` and `app.state` would be two modules with two caches.
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
if sys.path[0] != str(ROOT):
    others = [entry for entry in sys.path if Path(entry).resolve() not in (HERE, ROOT)]
    sys.path[:] = [str(ROOT), *others]

from app import look, state  # noqa: E402
from app.sidebar import sidebar  # noqa: E402

ICON = ROOT / "assets" / "icon.svg"  # a file of ours: a named icon comes from a font server
st.set_page_config(page_title="Headlight", page_icon=str(ICON), layout="wide")

page = st.navigation(
    [
        st.Page(
            HERE / "views" / "attention.py",
            title="Attention",
            default=True,
            help="Where every head of every layer looks, for your sentence.",
        ),
        st.Page(
            HERE / "views" / "heads.py",
            title="Heads",
            help="Every head in numbers, and the textbook names it is nearest to.",
        ),
        st.Page(
            HERE / "views" / "model_page.py",
            title="Model",
            url_path="model",
            help="The whole model in one picture, with its parameters and shapes.",
        ),
        st.Page(
            HERE / "views" / "inside.py",
            title="Inside",
            help="One head step by step: formula, numbers and code.",
        ),
        st.Page(
            HERE / "views" / "positions.py",
            title="Positions",
            help="How the model knows the order of words: the positional encodings it adds.",
        ),
        st.Page(
            HERE / "views" / "lookup.py",
            title="Look-up",
            help="Attention as a dictionary that answers by similarity: vectors to drag, then "
            "the queries and keys of a head.",
        ),
        st.Page(
            HERE / "views" / "residual.py",
            title="Residual",
            help="Each piece's vector from layer to layer, and what the model would answer there.",
        ),
        st.Page(
            HERE / "views" / "compare.py",
            title="Compare",
            help="The same weights in torch.nn.Transformer, side by side.",
        ),
        st.Page(
            HERE / "views" / "family.py",
            title="Family",
            help="The systems that describe a Transformer from scratch, and what each does its own "
            "way, measured on your sentence.",
        ),
        st.Page(
            HERE / "views" / "bertviz_page.py",
            title="BertViz",
            url_path="bertviz",
            help="BertViz's head, model and neuron view, without internet.",
        ),
        st.Page(
            HERE / "views" / "take_away.py",
            title="Take away",
            url_path="take-away",
            help="Pictures, tables and a page of your own, and one ZIP that holds all of it and "
            "can be checked.",
        ),
    ],
    position="top",
)


def body() -> None:
    st.html(f"<style>{look.STYLE}{look.PROJECTOR_STYLE * state.display().projector}</style>")
    st.header(page.title, anchor=False)
    if said := state.random_weights():
        st.info(said)
    with suppress(state.NothingToShow):
        page.run()


with suppress(state.NothingToShow):
    if state.is_rerun():  # widgets hold their values, and people look at the page
        try:
            body()
        finally:
            sidebar()
    else:
        sidebar()
        body()
