"""Atomic files: a reader always finds a complete file, whoever else is writing it."""

import errno
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a pipe waits for its other end, but on Windows


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write to a temporary file, then rename: a reader finds the complete old or new file, and the
    last of several writers wins. A link is written through to its target, an existing file keeps
    its permissions, and nothing is left behind after an exception. Raises OSError."""
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode & 0o7777
    except FileNotFoundError:
        mode = None
    # In the same folder, because a rename stays within a file system. The name is not predictable
    # and "x" is O_EXCL: neither another writer nor a link that was put there is ever met. Who may
    # not read the old file must not read the new one from its first moment.
    aside = target.with_name(f".new-{secrets.token_hex(8)}")
    create = partial(os.open, mode=0o666 if mode is None else mode)
    try:
        with open(aside, "xb", opener=create) as file:
            yield file
            file.flush()
            if mode is not None:
                os.chmod(aside, mode)  # the umask took its part when the file was created
            os.fsync(file.fileno())
        aside.replace(target)
    except BaseException as error:
        aside.unlink(missing_ok=True)
        # Nobody knows the other name; what fails while it writes, as on a full disk, has none.
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(aside)):
            error.filename = str(path)
        raise


def open_regular(path: Path) -> BinaryIO:
    """A file opened for reading, at once even where a pipe stands in its place. Raises OSError,
    also for a pipe, a device or a folder."""
    _check_regular(path, os.stat(path))  # opening a device may already do something
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | NO_WAIT))  # noqa: SIM115
    try:
        _check_regular(path, os.fstat(file.fileno()))
    except OSError:
        file.close()
        raise
    return file


def _check_regular(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def read_within(path: Path, most: int) -> bytes:
    """The content of a regular file that has at most so many bytes; no more is read. Raises
    OSError, and ValueError, with a sentence, for a larger one."""
    with open_regular(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"{path} is larger than {most / 1e6:,.0f} MB, which is too large.")
    return content


def read_json(path: Path, most: int) -> Any:
    """What a JSON file of at most so many bytes holds. Raises OSError, and ValueError, with a
    sentence."""
    content = read_within(path, most)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or nested too deeply
        raise ValueError(f"{path} is not valid JSON: {error}.") from None


def replace_file(path: Path, content: bytes | str) -> None:
    """Small content, see `replacing`."""
    with replacing(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)
