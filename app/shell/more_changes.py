"""Changes that do not stand beside what they change: as text, from lists, or by another run to
compare with."""

import streamlit as st

from headlight.app.shell import edits
from headlight.app.shell.layout import draw_settings
from headlight.app.state import catalog, session
from headlight.app.state.options import OTHER
from headlight.app.state.pages import Page
from headlight.model.probing.changes import VERBS

OTHER_RUN = ("other", "other_model", "other_step", "other_masks")

CHANGES_HELP = """Changes to the running model, separated by `;`. Each names an attention type (or
`all`), optionally layer and head, and what to do. Tokens start at 1.

| | |
|---|---|
{}

The comparison reads the same target. To patch heads or compare weights, both texts must have the
same number of tokens.
""".format("\n".join(f"| `{verb.example}` | {verb.help} |" for verb in VERBS.values() if verb.help))


def draw_changes(page: Page) -> None:
    """The changes as text, the run to compare with, and what is added from lists."""
    draw_settings(("changes",))
    with st.expander("What a change may be"):
        st.markdown(CHANGES_HELP)
    with st.container(horizontal=True):
        draw_settings(OTHER_RUN, on_change=_compare)
    if page.head:
        draw_ready_made()
    draw_minimal_pairs()


def _compare() -> None:
    """What is compared with is shown at once. A callback."""
    session.choose(shows=OTHER)


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
