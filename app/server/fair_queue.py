"""A fair queue for forward passes: first come, first served, a few at a time. Long work gives its
turn up between its steps, and short work goes before it."""

import time
from collections.abc import Callable, Hashable
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, get_ident

LONG = 0.2  # seconds; work that takes longer gives way
PATIENCE = 2.0  # seconds for which it does, before it comes first itself


@dataclass(eq=False)
class Work:
    """What a thread has its turn for, or waits for.

    thing  what it computes with
    large  whether it takes much memory
    taken  called in its thread each time its turn has come
    rank   the time at which it asked, later for long work: who has the least comes first
    since  when its turn came
    begun  whether it has had a turn: then it holds its thing, and its memory
    long   whether it has been found to take long
    """

    thing: Hashable
    large: bool = False
    taken: Callable[[], None] = lambda: None
    thread: int = field(default_factory=get_ident)
    rank: float = field(default_factory=lambda: time.monotonic())
    since: float = 0.0
    begun: bool = False
    long: bool = False


class FairQueue:
    """At most `at_once` threads compute, and never two with the same thing: not even while the one
    that has begun has given its turn up. Of large works no more than `at_once` are under way. A
    thread that has its turn may ask again inside."""

    def __init__(self, at_once: int):
        self.at_once, self.changed = at_once, Condition()
        self.computing: dict[int, Work] = {}  # by thread
        self.waiting: list[Work] = []

    @property
    def is_mine(self) -> bool:
        """Whether it is this thread's turn."""
        return get_ident() in self.computing

    @contextmanager
    def turn(
        self,
        thing: Hashable,
        on_wait: Callable[[int], None] = lambda ahead: None,
        interval: float = 0.5,
        large: bool = False,
        taken: Callable[[], None] = lambda: None,
    ):
        """The block, which computes with `thing`, runs when its turn has come, and `taken` is
        called whenever it has. While it has not, `told` hears every so many seconds how many are
        ahead."""
        if self.is_mine:
            yield
            return
        work = Work(thing, large, taken)
        with self.changed:
            self.waiting.append(work)
            self._admit()
        try:
            self._wait(work, on_wait, interval)
            yield
        finally:
            self._end(work)

    def pause(self, told: Callable[[int], None] = lambda ahead: None, every: float = 0.5) -> None:
        """Between two steps of this thread's work: where that is long, short work goes before it,
        and in turn others that are long. `told` as `turn` has it."""
        work, now = self.computing.get(get_ident()), time.monotonic()
        if work is None or not (work.long or now > work.since + LONG):
            return
        with self.changed:
            work.long, work.rank = True, now + PATIENCE
            del self.computing[work.thread]
            self.waiting.append(work)
            first = self._next()
            if first is work or (first.long and now < work.since + LONG):
                self.waiting.remove(work)
                self.computing[work.thread] = work
                return
            self._admit()
        self._wait(work, told, every)

    def _wait(self, work: Work, on_wait: Callable[[int], None], interval: float) -> None:
        while True:
            with self.changed:
                if self.changed.wait_for(lambda: work not in self.waiting, interval):
                    break
                before = [other for other in self.waiting if other.rank < work.rank]
                ahead = len(self.computing) + len(before)
            on_wait(ahead)  # outside the lock: it may be slow, or raise to end the wait
        work.taken()

    def _end(self, work: Work) -> None:
        with self.changed:
            self.computing.pop(work.thread, None)
            if work in self.waiting:
                self.waiting.remove(work)
            self._admit()

    def _admit(self) -> None:
        """Those whose turn has come compute."""
        while len(self.computing) < self.at_once and (work := self._next()):
            self.waiting.remove(work)
            self.computing[work.thread] = work
            work.begun, work.since = True, time.monotonic()
        self.changed.notify_all()

    def _next(self) -> Work | None:
        """Of those who wait, who may compute next."""
        under_way = [*self.computing.values(), *(one for one in self.waiting if one.begun)]
        in_use = {one.thing for one in under_way}
        is_full = sum(one.large for one in under_way) >= self.at_once
        may = [
            one
            for one in self.waiting
            if one.begun or not (one.thing in in_use or (one.large and is_full))
        ]
        return min(may, key=lambda one: one.rank, default=None)
