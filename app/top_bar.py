"""What stands on top of every page: the model, its texts, what is not as trained, the masks and the
selected head. Each widget writes its own part of the address, so that the address of a page is all
one needs to come back to it."""

import random

import streamlit as st

from app import catalog, compute, labels, session, settings
from app.components.copy_link import copy_link
from app.components.player import player
from app.pages import Page
from app.settings import MASKS, SETTINGS
from model.probing.trace import CannotRead

FEW = 3  # badges that are shown; the others stand behind them
READING = ("show", "scale", "order", "average", "special", "words", "least")


def top_bar(page: Page) -> None:
    with _line("texts"):
        session.draw("model", look={"width": 190, "label_visibility": "collapsed"})
        session.draw("source", look={"height": "content", "label_visibility": "collapsed"})
        _examples()
        _more()
    if session.context().structure is None:  # the page shows why
        st.title(page.title, anchor=False)
        return
    _answer()
    with _line("masks"):
        for key in filter(_concerns, MASKS):
            session.draw(key, look={"width": "content"})
        st.markdown(SETTINGS["pad_to"].label, width="content")
        session.draw("pad_to", look={"width": 110, "label_visibility": "collapsed"})
        if _concerns("step"):
            _steps()
    with _line("page"):
        st.title(page.title, anchor=False, width="content")
        if page.head:
            for key in ("kind", "layer", "head"):
                if key != "kind":
                    st.markdown(SETTINGS[key].label, width="content")
                session.draw(key, look={"label_visibility": "collapsed"})
        st.space("stretch")
        if page.reading:
            with st.popover("Display", icon=":material/tune:", key="display"):
                for key in READING:
                    session.draw(key)
        copy_link()


def _steps() -> None:
    chosen = session.values()
    steps = list(catalog.steps(chosen["model"]))
    player(steps, chosen["step"], on_step=lambda step: session.choose(step=step))
    session.draw("step", look={"width": 160, "label_visibility": "collapsed"})


def _line(key: str):
    return st.container(horizontal=True, vertical_alignment="center", key=key, gap="small")


def _concerns(key: str) -> bool:
    return SETTINGS[key].concerns(session.context())


def _more() -> None:
    """What one seldom changes."""
    more = st.popover(
        "",
        icon=":material/more_vert:",
        help="Projector, device, all models",
        key="more",
        on_change="rerun",
    )
    with more:
        session.draw("projector")
        session.draw("device")
        if more.open:
            for name, card in catalog.cards().items():
                st.markdown(f"**{name}**: {card}")


def _take_example() -> None:
    if chosen := st.session_state["example"]:
        session.choose(source=chosen, target="", example=None)


def _surprise(known: list[str]) -> None:
    others = [text for text in known if text != session.values()["source"]]
    session.choose(source=random.choice(others), target="")


def _examples() -> None:
    known = catalog.examples(session.values()["model"])
    if _concerns("line"):
        session.draw("line", look={"width": 200, "label_visibility": "collapsed"})
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


def _answer() -> None:
    """What the model says, and what about it is not as it was trained."""
    with _line("answer"):
        title, text = _output()
        if title:
            st.markdown(f"**{title}**", width="content")
        if _concerns("target"):
            session.draw("target", look={"placeholder": text, "label_visibility": "collapsed"})
            if not session.values()["target"] and text:
                st.button(
                    "Edit",
                    icon=":material/edit:",
                    on_click=session.choose,
                    kwargs={"target": text},
                    help="Edit it as the target that the decoder reads.",
                    key="edit_target",
                )
            st.button(
                "Translate again",
                icon=":material/translate:",
                on_click=session.translate_under_masks,
                help="Decodes with the masks as they are; the decoder reads the result.",
                key="translate_again",
            )
            if _concerns("hold"):
                session.draw("hold", look={"width": "content"})
        elif text:
            st.markdown(labels.escaped(text), width="content")
        _badges()


def _output() -> tuple[str, str]:
    """What the model's output is called, and the output as plain text."""
    if not session.values()["line"]:
        return "", ""
    try:
        run = session.run()
        view = session.view(run)
        title, text = labels.output(view, run, lambda: compute.trace_of(view, run))
        held = _concerns("hold") and session.values()["hold"] and not session.values()["target"]
        return f"{title}, final step" if held else title, text
    except (session.NothingToShow, CannotRead):
        return "", ""  # the page says why


def _badges() -> None:
    if message := catalog.random_weights(session.values()["model"]):
        st.badge("Random weights", icon=":material/casino:", color="orange", help=message)
    badges = settings.badges(session.context())
    for key, label in badges[:FEW]:
        _badge(key, label)
    if more := badges[FEW:]:
        with st.popover(f"+{len(more)} more"):
            for key, label in more:
                _badge(key, label)


def _badge(key: str, label: str) -> None:
    chosen = session.values()
    score = catalog.steps(chosen["model"]).get(chosen["step"], "") if key == "step" else ""
    st.button(
        f"{label} ×",
        on_click=session.reset,
        args=(key,),
        help=f"{score}  \nAs the model was trained" if score else "As the model was trained",
        key=f"badge_{key}",
        type="primary",
        wrap=False,
    )
