"""A fair queue around the model's passes: who asked first computes first, a few at a time."""

from collections import deque
from collections.abc import Callable, Hashable
from contextlib import contextmanager
from threading import Condition, get_ident


class Turns:
    """At most `at_once` threads compute, and never two with the same thing; the others wait in the
    order in which they came. A thread that has its turn may ask again inside."""

    def __init__(self, at_once: int):
        self.at_once, self.changed = at_once, Condition()
        self.computing: dict[int, Hashable] = {}  # thread → what with
        self.waiting: deque[tuple[int, Hashable]] = deque()

    @property
    def is_mine(self) -> bool:
        """Whether this thread has its turn."""
        return get_ident() in self.computing

    @contextmanager
    def turn(
        self,
        thing: Hashable,
        told: Callable[[int], None] = lambda ahead: None,
        every: float = 1.0,
    ):
        """The block, which computes with `thing`, runs when its turn has come. While it has not,
        `told` hears every so many seconds how many are ahead."""
        if self.is_mine:
            yield
            return
        me = get_ident(), thing
        self._wait(me, told, every)
        try:
            yield
        finally:
            with self.changed:
                del self.computing[get_ident()]
                self.changed.notify_all()

    def _wait(self, me: tuple, told: Callable[[int], None], every: float) -> None:
        with self.changed:
            self.waiting.append(me)
        try:
            while True:
                with self.changed:
                    if self.changed.wait_for(lambda: self._comes(me), every):
                        self.computing.update([me])
                        return
                    ahead = len(self.computing) + self.waiting.index(me)
                told(ahead)  # outside the lock: it may take long, or end the wait by raising
        finally:
            with self.changed:
                self.waiting.remove(me)
                self.changed.notify_all()

    def _comes(self, me: tuple) -> bool:
        in_use = self.computing.values()
        first = next((one for one in self.waiting if one[1] not in in_use), None)
        return first == me and len(self.computing) < self.at_once
