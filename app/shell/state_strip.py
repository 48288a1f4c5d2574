"""What differs from the model as trained: a chip for each difference, which of both is shown, undo
and redo, the training step; in Present also which head is shown."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from headlight.app import selection
from headlight.app.components.browser import open_unframed
from headlight.app.components.controls import player
from headlight.app.shell import edits, running_lesson
from headlight.app.shell.acts import acts
from headlight.app.shell.layout import (
    concerns,
    head_label,
    is_embedded,
    is_picture_alone,
)
from headlight.app.shell.output import draw_output
from headlight.app.state import catalog, session, widgets
from headlight.app.state.pages import Page
from headlight.app.text import formats, part_names
from headlight.model.probing.changes import CannotChange, Scope, written

UNTRAINED_HERE = "The models on this page have random weights, whichever model is selected."

VISIBLE_BADGES = 3  # badges that are shown; further ones go into a popover
PRESENTED_BADGES = 2  # the same in Present, where letters are large


def draw_state(page: Page) -> None:
    """The whole line. It is always there, so that no change moves the page."""
    draw_badges(page)
    if is_picture_alone() and page.head:  # the picker is hidden
        # Beside chips there is room only for its short name.
        chosen = session.values()
        head = Scope(chosen["kind"], chosen["layer"] - 1, chosen["head"] - 1)
        name = part_names.short_name(head) if concerns("shows") else head_label()
        st.markdown(f"**{name}**", width="content")
    if concerns("shows"):
        look = {"label_visibility": "collapsed", "width": "content"}
        widgets.draw("shows", widget_options=look)
    st.space("stretch")
    if not running_lesson.veils():
        draw_output()
    if len(session.history().states) > 1 and "undo" not in page.idle:
        draw_undo()
    if concerns("step") and "step" not in page.idle:
        _draw_steps()
    if is_embedded():
        open_unframed()
    elif session.values()["projector"]:
        st.button(
            "",
            icon=":material/close:",
            on_click=session.choose,
            kwargs={"projector": False},
            help="Leave Present (Esc)",
            key="leave_present",
            type="tertiary",
        )


def _draw_steps() -> None:
    chosen = session.values()
    steps = list(catalog.steps(chosen["model"]))
    player(steps, chosen["step"], on_step=lambda step: session.choose(step=step))
    widgets.draw("step", widget_options={"width": 130, "label_visibility": "collapsed"})


def draw_undo() -> None:
    for by, what, key in ((-1, "undo", "u"), (1, "redo", "y")):
        st.button(
            "",
            icon=f":material/{what}:",
            on_click=edits.undo_or_redo,
            args=(by,),
            disabled=not session.history().can(by),
            help=f"{what.capitalize()} ({key.upper()})",
            shortcut=key,
            key=what,
        )
    changed = session.changed_settings()
    st.button(
        "",
        icon=":material/restart_alt:",
        on_click=session.reset,
        args=changed,
        disabled=not changed,
        help="Back to the model as trained (X)",
        shortcut="x",
        key="as_trained",
    )


def draw_badges(page: Page) -> None:
    """Draw a badge for each act."""
    badges = [partial(_badge, key, label) for key, label in session.badges()]
    badges += _badges_of_changes()
    message = catalog.random_weights(session.values()["model"])
    if page.untrained:
        message = UNTRAINED_HERE
    if message:
        st.badge("Random weights", icon=":material/casino:", color="orange", help=message)
    elif not badges:
        as_it_is = "As trained" if session.context().can_change else "As recorded"
        st.caption(as_it_is, width="content")
    visible = PRESENTED_BADGES if session.values()["projector"] else VISIBLE_BADGES
    if len(badges) > visible and is_picture_alone() and page.head:
        visible -= 1
    for badge in badges[:visible]:
        badge()
    if more := badges[visible:]:
        with st.popover(f"+{len(more)} more"):
            for badge in more:
                badge()


def _badges_of_changes() -> list[Callable]:
    """One badge for each change, which removes it; or one for changes that cannot be parsed."""
    try:
        changes = selection.changes()
    except CannotChange:
        return [partial(_badge, "changes", "Invalid changes")]
    return [
        partial(
            st.button,
            f"{name} ×",
            on_click=edits.set_changes,
            args=([other for other in changes if other not in group],),
            help=f"{formats.escaped(written(group))}: remove this change",
            key=f"change_{number}",
            type="primary",
            wrap=False,
        )
        for number, (name, group) in enumerate(acts(changes, formats.escaped))
    ]


def _badge(key: str, label: str) -> None:
    chosen = session.values()
    if key == "pad_to" and (longest := selection.unpadded(chosen["pad_to"])):
        label = f"{label}: nothing to pad; the text has {longest} tokens"
    score = catalog.steps(chosen["model"]).get(chosen["step"], "") if key == "step" else ""
    undone = "Back to automatic translation" if key == "target" else "Back to the trained setting"
    st.button(
        f"{label} ×",
        on_click=session.reset,
        args=(key,),
        help=f"{score}  \n{undone}" if score else undone,
        key=f"badge_{key}",
        type="primary",
        wrap=False,
    )
