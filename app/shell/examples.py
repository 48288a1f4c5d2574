"""Example sentences of the selected model."""

import random

import streamlit as st

from headlight.app.shell.layout import concerns
from headlight.app.state import catalog, session, widgets


def _take_example() -> None:
    if chosen := st.session_state["example"]:
        session.choose(source=chosen, target="", example=None)


def _surprise(known: list[str]) -> None:
    others = [text for text in known if text != session.values()["source"]]
    session.choose(source=random.choice(others), target="")


def draw_examples() -> None:
    known = catalog.examples(session.values()["model"])
    if concerns("line"):
        widgets.draw("line", widget_options={"width": 200, "label_visibility": "collapsed"})
    if len(known) < 2:
        return
    st.selectbox(
        "Examples",
        known,
        index=None,
        placeholder="Examples",
        key="example",
        on_change=_take_example,
        label_visibility="collapsed",
        width=150,
    )
    st.button(
        "",
        icon=":material/casino:",
        on_click=_surprise,
        args=(known,),
        help="Another example",
        key="surprise",
    )
