"""The panel beside the picture: what changes the model while it runs."""

import streamlit as st

from headlight.app import selection
from headlight.app.results import head_results
from headlight.app.shell import edits, running_lesson
from headlight.app.shell.effect import peek
from headlight.app.shell.layout import concerns, is_chosen
from headlight.app.state import session, widgets
from headlight.app.state.pages import PADDING_MASKS, Page
from headlight.app.state.settings import MASKS
from headlight.app.text import head_card, notices
from headlight.model.probing.sites import Place
from headlight.model.surveys.survey import Survey


def draw_change(page: Page) -> None:
    """Every mask of the model, and padding; where a padding mask is off and nothing is padded, why
    that changes nothing. A single text has padding masks once it is padded."""
    if "switches" in page.idle:
        return
    if masks() or session.context().can_change:
        st.markdown("**Change**")
    draw_masks()


def masks() -> list[str]:
    """Those that have something to hide, and the padding."""
    is_padded = session.values()["pad_to"] or len(session.context().known.sides) > 1
    return [
        key
        for key in filter(concerns, (*MASKS, "pad_to"))
        if is_padded or key not in PADDING_MASKS or is_chosen(key)
    ]


def draw_masks() -> None:
    for key in masks():
        given = {"on_change": _pass_over_idle_padding} if key == "pad_to" else {}
        widgets.draw(key, widget_options=given)
    chosen = session.values()
    is_off = any(concerns(key) and not chosen[key] for key in PADDING_MASKS)
    if is_off and chosen["line"] and (longest := selection.unpadded(chosen["pad_to"])):
        st.caption(notices.nothing_padded(longest))


def _pass_over_idle_padding() -> None:
    """Stepping up from no padding jumps to the shortest length that pads; stepping down returns. A
    callback."""
    before, now = session.values()["pad_to"], st.session_state.get("pad_to", 0)
    if abs(now - before) == 1 and (longest := selection.unpadded(now)):
        session.choose(pad_to=longest + 1 if now > before else 0)


def draw_head(page: Page) -> None:
    """What is done to the selected head, and whether it is important."""
    _draw_peek()
    _draw_switch()
    if "importance" not in page.idle:
        draw_importance()


def _draw_peek() -> None:
    """While the causal mask is off: a button that selects the head that peeks most."""
    if running_lesson.veils() or (seen := peek()) is None:
        return
    head = {"kind": seen.kind, "layer": seen.layer, "head": seen.head}
    st.button(
        f"Decoder {seen.layer}.{seen.head} peeks most",
        icon=":material/visibility:",
        on_click=session.choose,
        kwargs=head | {"follow": f"{seen.at + 1} ", "to": f"{seen.at + 2} "},
        disabled=head == {key: session.values()[key] for key in head},
        help="Select it: the decoder head with the largest weight on a row's next token",
        key="select_peek",
        type="tertiary",
    )


def _draw_switch() -> None:
    """The button that switches the selected head off, or on again, where that can be done."""
    if not session.context().can_change:
        return
    focus, layer = session.focus(), session.values()["layer"]
    name = f"head {layer}.{focus.head + 1}"
    st.button(
        f"Switch {name} on again" if edits.is_off(focus) else f"Switch off {name}",
        icon=":material/power_settings_new:",
        kwargs=focus._asdict(),
        help=f"Layer {layer}, head {focus.head + 1}",
        key="switch_head",
        on_click=edits.edit,
        args=("off",),
        type="tertiary",
    )


def _surveyed() -> tuple[Survey, Place] | None:
    """A survey of the model and the selected head in it; None without one, or while a lesson asks
    something."""
    survey, *_ = head_results.survey_of(selection.view())
    if running_lesson.veils() or not survey:
        return None
    return survey, session.focus()._replace(layer=session.values()["layer"] - 1)


def over_all() -> str:
    """What a survey found of the selected head, as the end of a sentence; or ""."""
    return head_card.over_all(*place) if (place := _surveyed()) else ""


def draw_importance(is_whole: bool = False) -> None:
    """Whether the selected head is important, if that is known; by how much in a tooltip, or with
    `is_whole` beside it."""
    verdict, change = head_card.importance(*place) if (place := _surveyed()) else ("", "")
    if verdict:
        st.caption(
            f"{verdict} {change}" if is_whole else verdict, help=None if is_whole else change
        )
