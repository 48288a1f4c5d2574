"""Numbers and texts one after the other out of the bytes of a file, whose header may lie: nothing
is taken before it is known to be there."""

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

from headlight.model.files import open_regular
from headlight.model.messages import reason
from headlight.model.pretrained.weights import CannotLoad


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor is in a file, and in which of the format's types."""

    shape: tuple[int, ...]
    kind: int
    start: int
    size: int


class Bytes:
    """The bytes of a file, mapped into memory and read from `at` on; little-endian. Raises
    CannotLoad where there are fewer than are asked for."""

    def __init__(self, path: Path):
        self.path, self.at = path, 0
        try:
            with open_regular(path) as opened:
                self.content = memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:  # of an empty file
            raise CannotLoad(f"{path} cannot be read: {reason(error)}.") from None

    def __len__(self) -> int:
        return len(self.content)

    def take(self, size: int) -> memoryview:
        start = self.at
        self.room_for(size)
        self.at += size
        return self.content[start : self.at]

    def room_for(self, count: int, size: int = 1) -> int:
        """`count`, if so many things of at least `size` bytes each can follow."""
        if not 0 <= count * size <= len(self) - self.at:
            raise CannotLoad(
                f"{self.path} is truncated or corrupt: at byte {self.at:,} it declares "
                f"{count * size:,} bytes, but ends after {len(self) - self.at:,}."
            )
        return count

    def number(self, form: str) -> int | float | bool:
        """One number, in the letters of the module struct."""
        return self.numbers(form, 1)[0]

    def whole(self, form: str) -> int:
        """One whole number, likewise."""
        return int(self.number(form))

    def numbers(self, form: str, count: int) -> tuple:
        self.room_for(count, struct.calcsize(f"<{form}"))
        return struct.unpack(f"<{count}{form}", self.take(count * struct.calcsize(f"<{form}")))

    def text(self, size: int) -> str:
        try:
            return str(self.take(size), "utf-8")
        except UnicodeDecodeError:
            raise CannotLoad(f"{self.path} is corrupt: no text ends at byte {self.at:,}.") from None
