"""Turns for the pages of a class that follows its teacher: they are all asked for at once. And the
share of each student: one who asks all the time leaves the others theirs.

Python runs one thread at a time. Beside thirty that compute, a thirtieth is left for what the
teacher does next, and for the thread that sends what is done.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from statistics import median
from threading import Condition, Lock

AT_ONCE = 3  # one computes while others wait, for a pass through the model or a moment of the page
PATIENCE = 2.0  # seconds: a page that computes for long holds up nobody longer


class Turns:
    """A few runs at a time. All pictures come first, then the rest of the pages: that takes longer,
    and nobody looks at it first."""

    def __init__(self) -> None:
        self.changed = Condition()
        self.busy = self.pictures = 0  # turns under way; pictures that are asked for and not drawn

    @contextmanager
    def turn(self) -> Iterator[Callable[[], None]]:
        """One run of a page. Call what it yields once the picture is drawn."""
        is_picture = True

        def give_way() -> None:
            nonlocal is_picture
            self._end(is_picture)
            is_picture = False
            self._begin(is_picture)

        self._begin(is_picture)
        try:
            yield give_way
        finally:
            self._end(is_picture)

    def _begin(self, is_picture: bool) -> None:
        with self.changed:
            self.pictures += is_picture
            self.changed.wait_for(
                lambda: self.busy < AT_ONCE and (is_picture or not self.pictures), PATIENCE
            )
            self.busy += 1

    def _end(self, is_picture: bool) -> None:
        with self.changed:
            self.busy -= 1
            self.pictures -= is_picture
            self.changed.notify_all()


WINDOW = 20.0  # seconds
FREE = 0.2  # seconds of computing in them that are anybody's
SEVERAL = 2  # times what others take
LEAST, LONGEST_REST = 0.05, 2.0  # seconds: taken for a run of another, and waited at once


@dataclass
class Taken:
    """The runs of a student's pages in the last seconds: when each ended, and how long it
    computed."""

    runs: list[tuple[float, float]] = field(default_factory=list)
    one: Lock = field(default_factory=Lock)

    @property
    def seconds(self) -> float:
        return sum(seconds for _, seconds in self.runs)


class FairShares:
    """Any thread may call it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.taken: dict[str, Taken] = {}

    @contextmanager
    def run(self, student: str) -> Iterator[None]:
        """One run of a student's page. It waits first where the student has taken much more than
        others: as if each of them had then run as long, and for one page at a time."""
        own, rest = self._rest(student)
        with own.one if rest else nullcontext():
            time.sleep(rest)
            began = time.thread_time()
            try:
                yield
            finally:
                with self.lock:
                    own.runs.append((time.monotonic(), time.thread_time() - began))

    def _rest(self, student: str) -> tuple[Taken, float]:
        """What a student has taken, and how long to wait now, in seconds."""
        with self.lock:
            since = time.monotonic() - WINDOW
            own = self.taken.setdefault(student, Taken())
            for name, each in [*self.taken.items()]:
                each.runs = [run for run in each.runs if run[0] > since]
                if not each.runs and each is not own:
                    del self.taken[name]
            others = [each.seconds for each in self.taken.values() if each is not own]
        if not others or own.seconds <= max(FREE, SEVERAL * median(others)):
            return own, 0.0
        return own, min(len(others) * max(own.runs[-1][1], LEAST), LONGEST_REST)
