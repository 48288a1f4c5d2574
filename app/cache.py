"""A cache that is bounded in bytes: traces of long texts are large, those of short ones small."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock


class ByteBoundedCache:
    """Least recently used results go first when all together are larger than `limit` bytes."""

    def __init__(self, limit: int):
        self.limit, self.entries, self.lock = limit, OrderedDict(), Lock()

    def get(self, key: Hashable, make: Callable, size: Callable):
        """The result cached under `key`, else that of `make()`, of `size(…)` bytes."""
        with self.lock:
            if key in self.entries:
                self.entries.move_to_end(key)
                return self.entries[key][0]
        result = make()  # outside the lock: another session need not wait for this one
        self.put(key, result, size(result))
        return result

    def put(self, key: Hashable, result, size: int) -> None:
        """Keep a result under `key`, in the place of what was there."""
        with self.lock:
            self.entries[key] = result, size
            self.entries.move_to_end(key)
            while len(self.entries) > 1 and sum(n for _, n in self.entries.values()) > self.limit:
                self.entries.popitem(last=False)

    def known(self, key: Hashable):
        """What is cached under `key`, else None."""
        with self.lock:
            return self.entries.get(key, (None,))[0]
