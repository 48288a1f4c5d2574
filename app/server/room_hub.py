"""Each process keeps the state of its rooms in memory, and tells its pages of every change."""

import asyncio
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from threading import Lock, Thread
from typing import Any
from uuid import uuid4

from headlight.app.server.room_stores import STALE, open_store
from headlight.app.server.room_turns import FairShares, Turns
from headlight.app.server.rooms import (
    OF_STUDENTS,
    VIEW,
    NoRoom,
    RoomState,
    Store,
    Unreachable,
    state_after,
)

HEARTBEAT = STALE / 3  # seconds between two notes of how many are here
MOST_OF_ONE = 8  # listeners of one student, or of the teacher
REST = 1.0  # seconds until a store that failed is asked again


@dataclass(eq=False)
class Listener:
    """A page that waits until its room changes. `student`: whose. `is_left`: there are enough newer
    ones of the same student."""

    code: str
    is_teacher: bool
    following: bool
    loop: asyncio.AbstractEventLoop
    student: str = field(default_factory=lambda: uuid4().hex)
    called: asyncio.Event = field(default_factory=asyncio.Event)
    is_left: bool = False

    def call(self) -> None:
        self.loop.call_soon_threadsafe(self.called.set)


class Hub:
    """Any thread may call it."""

    def __init__(self, store: Store):
        self.store, self.lock, self.process = store, Lock(), uuid4().hex
        self.leading, self.writing = Lock(), Lock()
        self.unsent: dict[str, dict[str, Any]] = {}  # code → a view for which the store was away
        self.known: dict[str, RoomState] = {}
        self.crowds: dict[str, dict[str, int]] = {}
        self.listeners: dict[str, dict[Listener, None]] = {}  # by code, the oldest first
        self.watcher: Thread | None = None
        self.turns, self.shares = Turns(), FairShares()

    def room(self, code: str) -> RoomState:
        """A room as it is now, or as it was last known where the store does not answer. Raises
        NoRoom, and Unreachable where it was never known."""
        with self.lock:
            before = self.known.get(code)
            try:
                events = self.store.since(code, before and before.at)
            except NoRoom:
                self.known.pop(code, None)
                self.crowds.pop(code, None)
                raise
            except Unreachable:
                if before is None:
                    raise
                return before
            self.known[code] = now = state_after(events, code, before)
            if self.watcher is None:
                self.watcher = Thread(target=self._watch, daemon=True, name="rooms")
                self.watcher.start()
        if before is None or now.at != before.at:
            self._call(code, before is None or now.public != before.public)
        return now

    def append(self, code: str, kind: str, **body: Any) -> RoomState:
        """Raises NoRoom, TooMuch and Unreachable. A view is then sent once the store answers. What
        would not count is not kept."""
        if kind == VIEW:
            with self.leading:
                self._lead(code, body)
        elif kind in OF_STUDENTS:
            with self.writing:
                if self.room(code).counts(kind, body):
                    self.store.append(code, kind, body)
        else:
            self.store.append(code, kind, body)
        return self.room(code)

    def _lead(self, code: str, view: dict[str, Any]) -> None:
        self.unsent.pop(code, None)
        try:
            self.store.append(code, VIEW, view)
        except Unreachable:
            self.unsent[code] = view
            raise

    def end(self, code: str) -> None:
        self.store.end(code)
        self._look(code)

    def crowd(self, code: str) -> dict[str, int]:
        """How many students are in the room, and how many of them follow: the last known counts."""
        return self.crowds.get(code, {"here": 0, "following": 0})

    @staticmethod
    def is_ending() -> bool:
        """Whether uvicorn (0.54) has been told to end. It waits for every answer to be complete,
        and those to listeners never are."""
        server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
        return bool(getattr(server, "should_exit", False))

    def _call(self, code: str, everybody: bool) -> None:
        for listener in tuple(self.listeners.get(code, ())):
            if everybody or listener.is_teacher:
                listener.call()

    def _look(self, code: str) -> None:
        """Take in what other processes have written. Only a teacher's page shows how many are
        here."""
        try:
            self.room(code)
        except NoRoom:
            self._call(code, True)
            return
        if any(listener.is_teacher for listener in self.listeners.get(code, ())):
            self._count(code)

    def _count(self, code: str, here: dict[str, bool] | None = None) -> None:
        """Add up how many are in the room, once those of this process are noted, if given."""
        crowd = self.store.crowd(code, self.process, here)
        if crowd != self.crowds.get(code):
            self.crowds[code] = crowd
            self._call(code, False)

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """While the block runs, a listener is called. Its room is known. Of one student the newest
        ones stay: connections that are lost may seem open for minutes."""
        here = self.listeners.setdefault(listener.code, {})
        here[listener] = None
        own = [each for each in here if each.student == listener.student and not each.is_left]
        for old in own[:-MOST_OF_ONE]:
            old.is_left = True
            old.call()
        try:
            yield
        finally:
            here = self.listeners[listener.code]
            del here[listener]
            if not here:
                del self.listeners[listener.code]

    def _watch(self) -> None:
        """Runs while this process knows a room, and ends the rooms whose time is over."""
        noted: dict[str, tuple[Any, float]] = {}
        while True:
            try:
                if self.store.wait():
                    for code in tuple(self.known):
                        self._look(code)
                self._note(noted)
                if self.is_ending():
                    for code in tuple(self.listeners):
                        self._call(code, True)
                with self.leading:
                    for code, view in tuple(self.unsent.items()):
                        self._lead(code, view)
            except Exception as error:  # of the disk or the network: every page waits for this
                print(f"Rooms: {error}", file=sys.stderr, flush=True)
                time.sleep(REST)
            with self.lock:
                if not self.known:
                    self.watcher = None
                    return

    def _note(self, noted: dict[str, tuple[Any, float]]) -> None:
        """Tell the other processes how many are here. `noted`: room → the last such message, and
        its time."""
        for code in tuple(self.known):
            listeners = tuple(self.listeners.get(code, ()))
            students = [each for each in listeners if not each.is_teacher]
            here = {each.student: False for each in students}
            here |= {each.student: True for each in students if each.following}
            before, when = noted.get(code, (None, 0.0))
            if (state := (len(listeners), here)) != before or time.monotonic() > when + HEARTBEAT:
                noted[code] = state, time.monotonic()
                self._look(code)
                self._count(code, here)


@cache
def hub() -> Hub:
    """The hub of this process. It is created when somebody first opens a room. Raises OSError."""
    return Hub(open_store())
