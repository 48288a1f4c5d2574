"""How far long work is: one line that says so, with Stop. The next one, where it was stopped, goes
on."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import streamlit as st

from headlight.model.pause import pausing

AFTER, EVERY = 0.5, 0.2  # seconds: of work that is not told of, and between two changes of the line


def line(key: str, on_stop: Callable, args: tuple = ()):
    """Draw it; gives what `progress(share, text)` of is called."""
    with st.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0)
        st.button("Stop", key=key, on_click=on_stop, args=args)
    return bar


def stopped(text: str, key: str, on_go_on: Callable, args: tuple = ()) -> None:
    """Draw what became of work that was stopped, in words, and how it goes on."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(text, width="content")
        st.button("Go on", key=key, on_click=on_go_on, args=args)


@dataclass
class Asker:
    """Who waits for what this thread computes.

    stop    a callback of Stop
    refuse  raises what ends the work, where it was stopped before
    """

    stop: Callable[[], None]
    refuse: Callable[[], None]
    lines: Iterator[int] = field(default_factory=itertools.count)


_asker: ContextVar[Asker | None] = ContextVar("asker", default=None)


@contextmanager
def asked_by(asker: Asker) -> Iterator[None]:
    token = _asker.set(asker)
    try:
        yield
    finally:
        _asker.reset(token)


@contextmanager
def told(text: str) -> Iterator[None]:
    """What the block computes, in words, is told to the asker from AFTER seconds on."""
    work = _Work(text, _asker.get())
    with pausing(work.hear):
        try:
            yield
        finally:
            if work.box:
                work.box.empty()


class _Work:
    def __init__(self, text: str, asker: Asker | None):
        self.text, self.asker, self.box, self.bar = text, asker, None, None
        self.next, self.done, self.total = time.monotonic() + AFTER, 0, 0

    def hear(self, done: int, total: int) -> None:
        if total:
            self.done, self.total = done, total
        if self.asker is None or time.monotonic() < self.next:
            return
        self.asker.refuse()
        if self.box is None:
            self.box = st.empty()
            with self.box.container():
                self.bar = line(f"stop_work_{next(self.asker.lines)}", self.asker.stop)
        text = f"{self.text} {self.done:,} of {self.total:,}" if self.total else self.text
        self.bar.progress(self.done / max(self.total, 1), text)
        self.next = time.monotonic() + EVERY
