"""The line of a page: its title and views, the picker of the selected head, its own controls, and
the menus What if and Display."""

from contextlib import suppress
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from headlight.app import selection
from headlight.app.components.page_links import page_links
from headlight.app.shell import edits
from headlight.app.shell.layout import (
    draw_settings,
    head_label,
    menu,
    row,
)
from headlight.app.state import catalog, messages, session, widgets
from headlight.app.state.options import CLEAREST_ROW, LARGEST_WEIGHT
from headlight.app.state.pages import GROUPS, Page
from headlight.model.probing.changes import VERBS, CannotChange
from headlight.model.probing.trace import CannotRead

OTHER_RUN = ("other", "other_model", "other_step", "other_masks")

CHANGES_HELP = """Changes to the running model, separated by `;`. Each names an attention type (or
`all`), optionally layer and head, and what to do. Tokens start at 1.

| | |
|---|---|
{}

The comparison reads the same target. To patch heads or compare weights, both texts must have the
same number of tokens.
""".format("\n".join(f"| `{verb.example}` | {verb.help} |" for verb in VERBS.values() if verb.help))

OF_A_CELL = "compare"  # the page where a query is clicked in the picture
READING = ("show", "scale", "colours", "average", "special", "words", "least")


@dataclass(frozen=True)
class PageRow:
    """The line and two places of it; `controls` is for the page's own."""

    row: DeltaGenerator
    picker: DeltaGenerator
    controls: DeltaGenerator


def draw_title(page: Page) -> PageRow:
    """Draws title and views, which come before the page itself: one can leave a page that takes
    long."""
    line = row("page")
    with line:
        st.title(page.group if page.view else page.title, anchor=False, width="content")
        draw_views(page)
        return PageRow(line, row("picker", "content"), row("controls", "content"))


def draw_views(page: Page) -> None:
    views = GROUPS.get(page.group, [])
    if len(views) > 1:
        links = [(view.view, view.path or "", view == page) for view in views]
        page_links("views", links, page.path or "", title=f"Views of {page.group}")


def draw_picker(page: Page) -> None:
    """Kind of attention, layer and head in one menu, named by what is selected."""
    with menu(head_label(), "head_picker") as picker:
        if not picker.open:
            return
        with st.container(horizontal=True):
            draw_settings(("kind", "layer", "head"))
        if page.key == OF_A_CELL:
            with st.container(horizontal=True):
                _draw_cell()


def _draw_cell() -> None:
    """The selected query and key, which are usually clicked in the picture."""
    focus, firsts = session.focus(), {"follow": CLEAREST_ROW, "to": LARGEST_WEIGHT}
    if not session.values()["line"]:
        return
    with suppress(messages.NothingToShow, CannotChange, CannotRead):  # the page says why
        trace = selection.shown().trace
        texts = dict(zip(firsts, trace.texts_of(focus.kind), strict=True))
        names = {"follow": trace.row_words(*focus)}
        for key in firsts:
            tokens = texts[key].tokens
            widgets.draw_token(key, tokens, firsts[key], names=names.get(key, ()))


def draw_display(page: Page) -> None:
    if page.reading and "display" not in page.idle:
        with menu("Display", "display", icon=":material/tune:") as display:
            if display.open:
                draw_settings(READING)


def draw_what_if(page: Page) -> None:
    """Any change at all, where anything can be changed."""
    if not session.context().can_change or "what_if" in page.idle:
        return
    _close_after_change()
    with menu("What if", "what_if", icon=":material/terminal:") as what_if:
        if not what_if.open:
            return
        draw_changes(page)
        st.markdown(CHANGES_HELP)


def draw_changes(page: Page) -> None:
    """The changes as text, the run to compare with, and what is added from lists."""
    draw_settings(("changes",))
    with st.container(horizontal=True):
        draw_settings(OTHER_RUN)
    if page.head:
        draw_ready_made()
    draw_minimal_pairs()


def _close_after_change() -> None:
    """Closes the menu What if, which covers the picture, once a change was added in it. After a
    comparison it stays: one may go on to patch from it."""
    notes, now = session.memo(), session.values()["changes"]
    before, notes.what_if = notes.what_if, now
    if before not in (None, now):
        with suppress(CannotChange):  # else the line is to be mended
            selection.changes()
            widgets.close("what_if")


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
