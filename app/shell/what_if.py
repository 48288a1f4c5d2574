"""The menu What if: changes of the selected head, minimal pairs, the other run."""

import streamlit as st

from headlight.app.shell import edits
from headlight.app.state import catalog, session
from headlight.model.probing.changes import VERBS, readable

OTHER_RUN = ("other", "other_model", "other_step", "other_masks")


def draw_ready_made() -> None:
    """A menu of changes to the selected head, its layer or its kind of attention."""
    with st.container(horizontal=True):
        st.segmented_control(
            "Scope",
            list(edits.SCOPES),
            default="head",
            key="change_of",
            required=True,
            label_visibility="collapsed",
        )
        st.selectbox(
            "Add a change",
            [line for change in VERBS.values() for line in change.ready_made],
            index=None,
            placeholder="Add a change",
            key="ready_made",
            on_change=_take_ready_made,
            label_visibility="collapsed",
            width=200,
        )


def _take_ready_made() -> None:
    if verb := st.session_state["ready_made"]:
        edits.add_change(st.session_state["change_of"], verb)
        session.choose(ready_made=None)


def draw_no_positions() -> None:
    """A button that takes the positions out of the first text, if the model adds any there."""
    structure = session.context().known
    side = structure.sides[0].title
    change = f"{side}=positions:none"
    if readable(change, structure.parts):
        st.button(
            f"No positions in the {side}",
            on_click=edits.add,
            args=(change,),
            disabled=change in session.values()["changes"],
            key="no_positions",
        )


def _take_pair() -> None:
    if chosen := st.session_state["minimal_pair"]:
        source, other = chosen.split(" / ")
        session.choose(source=source, other=other, target="", minimal_pair=None)


def draw_minimal_pairs() -> None:
    """A menu of minimal pairs: two sentences that differ in one word and have equally many
    tokens."""
    if known := catalog.pairs(session.values()["model"]):
        st.selectbox(
            "Minimal pairs",
            [" / ".join(pair) for pair in known],
            index=None,
            placeholder="Choose a minimal pair",
            key="minimal_pair",
            on_change=_take_pair,
            label_visibility="collapsed",
        )
