"""A cache that is bounded in bytes and in number: traces of long texts are large, and of short ones
there are many."""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Event, Lock


class ByteBoundedCache:
    """Least recently used results go first, when all together are larger than `limit` bytes or more
    than `most`. The `least` that were used last stay however large they are. `gone` hears of the
    keys that went."""

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
        """The result cached under `key`, else that of `make()`, of `size(…)` bytes. Who asks while
        another session makes it `waits` for that one, or makes it too."""
        while True:
            with self.lock:
                if key in self.entries:
                    self.entries.move_to_end(key)
                    return self.entries[key][0]
                made = self.making.setdefault(key, mine := Event())
            if made is mine or not waits:
                break
            made.wait()  # where making it failed, or was broken off, it is tried anew
        try:
            result = make()  # outside the lock: who asks for another need not wait
            self.put(key, result, size(result))
        finally:
            with self.lock:
                if self.making.get(key) is mine:
                    del self.making[key]
            mine.set()
        return result

    def put(self, key: Hashable, result, size: int = 0) -> None:
        """Keep a result of so many bytes under `key`, in the place of what was there."""
        with self.lock:
            self._drop(key)
            self.entries[key] = result, size
            self.bytes += size
            gone = self._shrink()
        for old in gone:
            self.gone(old)

    def known(self, key: Hashable):
        """What is cached under `key`, else None."""
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
        """Drop the results whose keys are meant."""
        with self.lock:
            for key in [key for key in self.entries if is_meant(key)]:
                self._drop(key)
