"""The regions of every page: its own controls, its finding, the hero picture, and beside it a panel
that explains, changes and counts. A page draws its picture where it is called and asks here for
the other regions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from headlight.app.shell import effect as shell_effect
from headlight.app.shell.effect import Effect
from headlight.app.text.exercises import Exercise


@dataclass(frozen=True)
class Frame:
    """The containers of one script run, and `effect`: what was changed did to the output, which
    is measured once, when the page or the screen first asks for it."""

    controls: DeltaGenerator
    finding: DeltaGenerator
    hero: DeltaGenerator
    lesson: DeltaGenerator | None
    room: DeltaGenerator | None
    notices: DeltaGenerator
    explain: DeltaGenerator
    change: DeltaGenerator
    numbers: DeltaGenerator
    effect: Callable[[], Effect] = field(default_factory=lambda: cache(shell_effect.effect))


EXPLAINS = "What this picture shows"

_frame: ContextVar[Frame] = ContextVar("frame")


def make(
    controls: DeltaGenerator,
    body: DeltaGenerator,
    lesson: bool = False,
    room: bool = False,
    presented: bool = False,
    above: DeltaGenerator | None = None,
) -> Frame:
    """The regions of a run; the page's own controls are in the bar, all others in `body`. What
    a `room` asks and the `lesson` that runs, if any, stand at the top of the panel, or,
    `presented`, where the finding is. What explains and changes the picture stands in the panel, or
    in the line `above`."""
    with body:
        content = st.container(key="content", gap="small")
        panel = st.container(key="panel", gap="small")
    step = asked = None
    with content if presented else panel:
        if room:
            asked = st.container(key="room_region", gap="xsmall")
        if lesson:
            step = st.container(key="lesson_region", gap="xsmall")
    with content:
        finding, hero = st.container(key="finding"), st.container(key="hero", gap="small")
    with panel:
        notices = st.container(key="notices", gap="xsmall")
    with above or panel:
        if above:
            explain = st.popover("", key="explained", icon=":material/help:", help=EXPLAINS)
        else:
            explain = st.container(key="explain", gap="xsmall")
        change = st.container(key="switches", gap="xsmall")
    with panel:
        numbers = st.container(key="numbers_panel", gap="xsmall")
    return Frame(controls, finding, hero, step, asked, notices, explain, change, numbers)


@contextmanager
def of_page(regions: Frame) -> Iterator[None]:
    """While the page is drawn, its regions are these."""
    token = _frame.set(regions)
    try:
        with regions.hero:
            yield
    finally:
        _frame.reset(token)


def controls() -> DeltaGenerator:
    """The place of a page's own controls, a row."""
    return _frame.get().controls


def notices() -> DeltaGenerator:
    """The place of notices, above the panel: they move nothing."""
    return _frame.get().notices


def numbers() -> DeltaGenerator:
    """The place of numbers, in the panel."""
    return _frame.get().numbers


def explanation() -> DeltaGenerator:
    """The place of what explains the picture, in the panel."""
    return _frame.get().explain


def finding(text: str) -> None:
    """One sentence on what the picture shows, in Markdown."""
    _frame.get().finding.markdown(text)


def effect() -> Effect:
    """What was changed did to the output, see effect.py; empty where nothing was."""
    return _frame.get().effect()


def explain(text: str, exercise: Exercise | None = None) -> None:
    """What one sees, in the panel, and what to try. A browser may translate the text: it must quote
    no word of the model."""
    explanation().markdown(f'<div translate="yes">\n\n{text}\n\n</div>', unsafe_allow_html=True)
    if exercise:
        with explanation():
            draw_exercise(exercise)


def draw_exercise(exercise: Exercise) -> None:
    """A task, whose answer unfolds."""
    st.expander(f"**Try:** {exercise.task}").markdown(exercise.answer)
