"""What is computed once: for good, or in a cache bounded in bytes and in entries, since traces of
long texts are large and traces of short texts are many."""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from threading import Event, Lock, RLock
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")
_known: list[dict] = []  # of every function of `once`


def once(make: Callable[Given, Result]) -> Callable[Given, Result]:
    """A function's result for its arguments, computed once per process: who asks meanwhile waits.
    Streamlit's own caches hash and copy, at every one of a hundred questions of a script run."""
    known, lock = {}, RLock()
    _known.append(known)

    @wraps(make)
    def result(*args: Given.args, **named: Given.kwargs) -> Result:
        key = (args, *named.items())
        if key not in known:
            with lock:
                if key not in known:
                    known[key] = make(*args, **named)
        return known[key]

    return result


def forget_all() -> None:
    """Drop every result of `once`."""
    for known in _known:
        known.clear()


class ByteBoundedCache:
    """Drops the least recently used results when they exceed `limit` bytes or `most` entries. The
    `least` most recent ones stay however large they are. `gone` is called with each dropped key."""

    def __init__(
        self,
        limit: float = math.inf,
        most: float = math.inf,
        least: int = 1,
        gone: Callable[[Hashable], None] = lambda key: None,
    ):
        self.limit, self.most, self.least, self.gone = limit, most, least, gone
        self.entries, self.making, self.lock = OrderedDict(), {}, Lock()
        self.bytes = 0  # of all results together

    def get(
        self,
        key: Hashable,
        make: Callable,
        size: Callable = lambda result: 0,
        waits: bool = True,
    ):
        """The result cached under `key`, or else `make()`, which takes `size(result)` bytes. If
        another session is computing it, wait for that one, or, unless `waits`, compute it as
        well."""
        while True:
            with self.lock:
                if key in self.entries:
                    self.entries.move_to_end(key)
                    return self.entries[key][0]
                pending = self.making.setdefault(key, own_event := Event())
            if pending is own_event or not waits:
                break
            pending.wait()  # if the other session failed or was stopped, try again
        try:
            result = make()  # outside the lock: requests for other keys must not wait
            self.put(key, result, size(result))
        finally:
            with self.lock:
                if self.making.get(key) is own_event:
                    del self.making[key]
            own_event.set()
        return result

    def put(self, key: Hashable, result, size: int = 0) -> None:
        """Store a result of `size` bytes under `key`, replacing the earlier one."""
        with self.lock:
            self._drop(key)
            self.entries[key] = result, size
            self.bytes += size
            gone = self._shrink()
        for old in gone:
            self.gone(old)

    def known(self, key: Hashable):
        """The result cached under `key`, or None."""
        with self.lock:
            return self.entries.get(key, (None,))[0]

    def _shrink(self) -> list[Hashable]:
        gone = []
        while len(self.entries) > self.least and (
            len(self.entries) > self.most or self.bytes > self.limit
        ):
            gone.append(next(iter(self.entries)))
            self._drop(gone[-1])
        return gone

    def _drop(self, key: Hashable) -> None:
        _, size = self.entries.pop(key, (None, 0))
        self.bytes -= size

    def forget(self, is_meant: Callable[[Hashable], bool]) -> None:
        """Drop the results for whose keys `is_meant` holds."""
        with self.lock:
            for key in [key for key in self.entries if is_meant(key)]:
                self._drop(key)
