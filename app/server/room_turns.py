"""Turns for the pages of a class that follows its teacher: they are all asked for at once.

Python runs one thread at a time. Beside thirty that compute, a thirtieth is left for what the
teacher does next, and for the thread that sends what is done.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition

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
