"""The regions of every page below its header: its own controls, its picture, what explains it, and
numbers. A page draws its picture where it is called and asks here for the other regions."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
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
    """The containers of one script run; `said`: the page's finding; and `effect`: what was changed
    did to the output, which is measured once, when the page or the screen first asks for it."""

    controls: DeltaGenerator
    hero: AbstractContextManager
    notices: DeltaGenerator
    explain: DeltaGenerator
    numbers: DeltaGenerator
    said: list[str] = field(default_factory=list)
    effect: Callable[[], Effect] = field(default_factory=lambda: cache(shell_effect.effect))


_frame: ContextVar[Frame] = ContextVar("frame")


def make(body: DeltaGenerator) -> Frame:
    """The regions of a run, from top to bottom: notices, the page's own controls, its picture, what
    explains it, and numbers."""
    with body:
        with st.container(key="content", gap="small"):
            notices = st.container(key="notices", gap="xsmall")
            controls = st.container(key="controls", horizontal=True, vertical_alignment="center")
            hero = st.container(key="hero", gap="small")
        explain = st.container(key="explain", gap="xsmall")
        numbers = st.container(key="numbers_panel", gap="xsmall")
    return Frame(controls, hero, notices, explain, numbers)


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
    """The place of notices, above the picture."""
    return _frame.get().notices


def numbers() -> DeltaGenerator:
    """The place of numbers, below the picture."""
    return _frame.get().numbers


def explanation() -> DeltaGenerator:
    """Where the explanation of the picture stands, below it."""
    return _frame.get().explain


def finding(text: str) -> None:
    """Say in one sentence, in Markdown, what the picture shows. It replaces the one before."""
    _frame.get().said[:] = [text]


def effect() -> Effect:
    """What was changed did to the output, see effect.py; empty where nothing was."""
    return _frame.get().effect()


def explain(text: str, exercise: Exercise | None = None) -> None:
    """What one sees, below the picture, and what to try. A browser may translate the text: it must
    quote no word of the model."""
    explanation().markdown(f'<div translate="yes">\n\n{text}\n\n</div>', unsafe_allow_html=True)
    if exercise:
        with explanation():
            draw_exercise(exercise)


def draw_exercise(exercise: Exercise) -> None:
    """A task, whose answer unfolds."""
    st.expander(f"**Try:** {exercise.task}").markdown(exercise.answer)
