"""What every page shares: model, sentence, masks and the head in focus. Each widget writes its
own part of the address, so that the address of a page is all one needs to come back to it."""

import random

import streamlit as st

from app import catalog, session
from app.components.copy_link import copy_link
from app.settings import MASKS, SETTINGS


def sidebar() -> None:
    here = session.context()
    with st.sidebar:
        _model()
        _sentence()
        if here.structure is not None:  # else the page shows why
            for key in ("kind", "layer", "head"):
                session.draw(key)
            _masks(here.writes)
            with st.expander("Pictures", icon=":material/tune:"):
                for key in ("show", "scale", "order", "average", "special", "words", "least"):
                    session.draw(key)
        session.draw("projector")
        copy_link()


def _concerns(key: str) -> bool:
    return SETTINGS[key].concerns(session.context())


def _model() -> None:
    session.draw("model")
    session.draw("device")
    chosen, cards = session.values(), catalog.cards()
    if _concerns("step"):
        session.draw("step")
        if score := catalog.steps(chosen["model"])[chosen["step"]]:
            st.caption(f"At this step: {score}")
    st.caption(cards.get(chosen["model"], ""))
    with st.popover("All models", help="What each was trained for, its size and its score."):
        for name, card in cards.items():
            st.markdown(f"**{name}**: {card}")


def _take_example() -> None:
    if chosen := st.session_state["example"]:
        session.choose(source=chosen, target="", example=None)


def _surprise(known: list[str]) -> None:
    others = [text for text in known if text != session.values()["source"]]
    session.choose(source=random.choice(others), target="")


def _sentence() -> None:
    chosen = session.values()
    known = catalog.examples(chosen["model"])
    session.draw("source")
    if _concerns("line"):
        session.draw("line")
    if len(known) > 1:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.selectbox(
                "Examples",
                known,
                index=None,
                placeholder="Take an example …",
                key="example",
                on_change=_take_example,
                label_visibility="collapsed",
                width=190,
            )
            st.button(
                "",
                icon=":material/casino:",
                on_click=_surprise,
                args=(known,),
                help="Surprise me: another example.",
                key="surprise",
            )
    if _concerns("target"):
        writer = catalog.trained(chosen["model"])
        session.draw("target", look={"placeholder": f"written by {writer}"})
        if chosen["target"]:
            st.button(
                "Let the model write it",
                on_click=session.choose,
                kwargs={"target": ""},
                help="Empty the target box.",
            )


def _masks(writes: bool) -> None:
    for key in filter(_concerns, MASKS):
        session.draw(key)
    session.draw("pad_to")
    with st.container(horizontal=True):
        st.button(
            "Reset",
            on_click=session.choose,
            kwargs={key: SETTINGS[key].default for key in (*MASKS, "pad_to")},
            help="All masks on, no padding.",
        )
        if writes:
            st.button(
                "Translate again under these masks",
                on_click=session.translate_under_masks,
                help="Decodes with the masks as they are and puts the result into the target box.",
            )
