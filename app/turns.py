"""A fair queue around the model's passes: who asked first computes first, a few at a time."""

from collections import deque
from collections.abc import Callable
from contextlib import contextmanager
from threading import Condition, get_ident


class Turns:
    """At most `at_once` threads compute; the others wait in the order in which they came. A thread
    that has its turn may ask again inside."""

    def __init__(self, at_once: int):
        self.at_once, self.computing, self.waiting = at_once, set(), deque()
        self.changed = Condition()

    @property
    def is_mine(self) -> bool:
        """Whether this thread has its turn."""
        return get_ident() in self.computing

    @contextmanager
    def turn(self, told: Callable[[int], None] = lambda ahead: None, every: float = 1.0):
        """The block runs when its turn has come. While it has not, `told` hears every so many
        seconds how many are ahead."""
        if self.is_mine:
            yield
            return
        me = get_ident()
        self._wait(me, told, every)
        try:
            yield
        finally:
            with self.changed:
                self.computing.remove(me)
                self.changed.notify_all()

    def _wait(self, me: int, told: Callable[[int], None], every: float) -> None:
        with self.changed:
            self.waiting.append(me)
        try:
            while True:
                with self.changed:
                    if self.changed.wait_for(lambda: self._comes(me), every):
                        self.computing.add(me)
                        return
                    ahead = len(self.computing) + self.waiting.index(me)
                told(ahead)  # outside the lock: it may take long, or end the wait by raising
        finally:
            with self.changed:
                self.waiting.remove(me)
                self.changed.notify_all()

    def _comes(self, me: int) -> bool:
        return self.waiting[0] == me and len(self.computing) < self.at_once
