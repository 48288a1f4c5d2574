"""A fair queue for forward passes: first come, first served, a few at a time. Long work gives up
its turn between steps, and short work goes first."""

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Condition, get_ident

LONG = 0.2  # seconds of an asker's turns; longer work gives way to others
PATIENCE = 2.0  # seconds that long work gives way, before it goes first itself


@dataclass
class Asker:
    """Who asks for turns, such as one run of a page; `used`: the seconds that they lasted."""

    used: float = 0.0


_asker: ContextVar[Asker | None] = ContextVar("asker", default=None)


@contextmanager
def one_asker() -> Iterator[None]:
    """All turns in the block are of one asker. Long work of many turns would otherwise go as short
    work at the beginning of each."""
    token = _asker.set(Asker())
    try:
        yield
    finally:
        _asker.reset(token)


@dataclass(eq=False)
class Work:
    """One computation, in its turn or waiting for one.

    resource  what it computes with, such as a view of a model
    large     whether it needs much memory; such work is long from the start
    on_turn   called in its thread whenever its turn begins
    asker     who asked for it
    rank      the time at which it asked, later for long work; the lowest goes first
    since     when its turn began
    begun     whether it has had a turn; from then on it holds its resource and its memory
    long      whether its asker's turns have lasted longer than LONG
    """

    resource: Hashable
    large: bool = False
    on_turn: Callable[[], None] = lambda: None
    thread: int = field(default_factory=get_ident)
    asker: Asker = field(default_factory=lambda: _asker.get() or Asker())
    rank: float = 0.0
    since: float = 0.0
    begun: bool = False
    long: bool = False

    def ask(self, now: float) -> None:
        self.long = self.long or self.large or self.asker.used > LONG
        self.rank = now + (PATIENCE if self.long else 0)


class FairQueue:
    """At most `at_once` threads compute, and never two with the same resource, not even while the
    first has given up its turn. No more than `at_once` large computations are under way. While
    short work computes, long work does not, unless it has waited for PATIENCE. A thread may ask
    again during its turn."""

    def __init__(self, at_once: int):
        self.at_once, self.changed = at_once, Condition()
        self.computing: dict[int, Work] = {}  # by thread
        self.waiting: list[Work] = []

    @property
    def is_mine(self) -> bool:
        """Whether it is this thread's turn."""
        return get_ident() in self.computing

    @property
    def is_free(self) -> bool:
        """Whether a turn would begin at once, and nobody waits for one."""
        with self.changed:
            return not self.waiting and len(self.computing) < self.at_once

    @contextmanager
    def turn(
        self,
        resource: Hashable,
        on_wait: Callable[[int], None] = lambda ahead: None,
        interval: float = 0.5,
        large: bool = False,
        on_turn: Callable[[], None] = lambda: None,
    ):
        """Runs the block in its turn with the resource; `on_turn` is called whenever the turn
        begins. Until then `on_wait` is called every `interval` seconds with the number ahead."""
        if self.is_mine:
            yield
            return
        work = Work(resource, large, on_turn)
        with self.changed:
            work.ask(time.monotonic())
            self.waiting.append(work)
            self._admit()
        try:
            self._wait(work, on_wait, interval)
            yield
        finally:
            self._end(work)

    def pause(
        self, on_wait: Callable[[int], None] = lambda ahead: None, interval: float = 0.5
    ) -> None:
        """Called between two steps of this thread's work. If the work is long, short work goes
        first, and long works take turns. `on_wait` and `interval` as in `turn`."""
        work, now = self.computing.get(get_ident()), time.monotonic()
        if work is None or not (work.long or work.asker.used + now - work.since > LONG):
            return
        with self.changed:
            if not work.long:
                work.long = True
                self._admit()  # long work that let it go first
            first, is_over = self._next(), now > work.since + LONG
            is_short_next = self._is_short_computing() or (first and not first.long)
            if not (is_short_next or (first and is_over)):
                return
            self._give_up(work)
            work.ask(now)
            self.waiting.append(work)
            self._admit()
        self._wait(work, on_wait, interval)

    def _wait(self, work: Work, on_wait: Callable[[int], None], interval: float) -> None:
        while True:
            with self.changed:
                if self.changed.wait_for(lambda: work not in self.waiting, interval):
                    break
                before = [other for other in self.waiting if other.rank < work.rank]
                ahead = len(self.computing) + len(before)
            on_wait(ahead)  # outside the lock: it may be slow, or raise to end the wait
        work.on_turn()

    def _end(self, work: Work) -> None:
        with self.changed:
            if work in self.waiting:
                self.waiting.remove(work)
            else:
                self._give_up(work)
            self._admit()

    def _give_up(self, work: Work) -> None:
        """Ends its turn."""
        del self.computing[work.thread]
        work.asker.used += time.monotonic() - work.since

    def _admit(self) -> None:
        """Begin the turns that can begin."""
        while len(self.computing) < self.at_once and (work := self._next()):
            self.waiting.remove(work)
            self.computing[work.thread] = work
            work.begun, work.since = True, time.monotonic()
        self.changed.notify_all()

    def _next(self) -> Work | None:
        """The work whose turn is next, among those that may begin or go on."""
        under_way = [*self.computing.values(), *(work for work in self.waiting if work.begun)]
        in_use = {work.resource for work in under_way}
        is_full = sum(work.large for work in under_way) >= self.at_once
        eligible = [
            work
            for work in self.waiting
            if work.begun or not (work.resource in in_use or (work.large and is_full))
        ]
        first = min(eligible, key=lambda work: work.rank, default=None)
        if first and first.rank > time.monotonic() and self._is_short_computing():
            return None  # it is long
        return first

    def _is_short_computing(self) -> bool:
        return not all(work.long for work in self.computing.values())
