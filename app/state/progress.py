"""Progress of long work: one line with a Stop button, and afterwards a way to go on."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import streamlit as st

from headlight.model.pause import pausing

DELAY, INTERVAL = 0.5, 0.2  # seconds before the line appears, and between two updates of it


def progress_line(key: str, on_stop: Callable, args: tuple = ()):
    """Draw the line; returns its progress bar."""
    with st.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0)
        st.button("Stop", key=key, on_click=on_stop, args=args)
    return bar


def stopped_line(text: str, key: str, on_go_on: Callable, args: tuple = ()) -> None:
    """Draw a line on work that was stopped, with a button to go on."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(text, width="content")
        st.button("Continue", key=key, on_click=on_go_on, args=args)


@dataclass
class Observer:
    """The page that waits for what this thread computes.

    on_stop           callback of the Stop button
    raise_if_stopped  ends work that the user has stopped
    before_line       called before a line is drawn
    """

    on_stop: Callable[[], None]
    raise_if_stopped: Callable[[], None]
    before_line: Callable[[], None] = lambda: None
    line_numbers: Iterator[int] = field(default_factory=itertools.count)


_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


@contextmanager
def observed_by(observer: Observer) -> Iterator[None]:
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


@contextmanager
def reporting(text: str) -> Iterator[None]:
    """Show the observer how far the block is, described by `text`, once it takes longer than
    DELAY."""
    report = _Report(text, _observer.get())
    with pausing(report.update):
        try:
            yield
        finally:
            if report.box:
                report.box.empty()


class _Report:
    def __init__(self, text: str, observer: Observer | None):
        self.text, self.observer, self.box, self.bar = text, observer, None, None
        self.next_update, self.done, self.total = time.monotonic() + DELAY, 0, 0

    def update(self, done: int, total: int) -> None:
        if total:
            self.done, self.total = done, total
        if self.observer is None or time.monotonic() < self.next_update:
            return
        self.observer.raise_if_stopped()
        if self.box is None:
            self.observer.before_line()
            self.box = st.empty()
            with self.box.container():
                key = f"stop_work_{next(self.observer.line_numbers)}"
                self.bar = progress_line(key, self.observer.on_stop)
        text = f"{self.text} {self.done:,} of {self.total:,}" if self.total else self.text
        assert self.bar is not None
        self.bar.progress(self.done / max(self.total, 1), text)
        self.next_update = time.monotonic() + INTERVAL
