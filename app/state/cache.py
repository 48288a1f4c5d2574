"""A cache bounded in bytes and in entries: traces of long texts are large, traces of short texts
are many."""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Event, Lock


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
