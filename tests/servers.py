"""Servers that tests start."""

import socket
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.waiting import wait_until


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serving(
    command: Sequence, port: int, path: str = "/_stcore/health", **options
) -> Iterator[str]:
    """The address of a server, as soon as it answers at `path`, until the block ends; `options`: of
    its process."""
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT} | options
    process, address = subprocess.Popen(command, **options), f"http://127.0.0.1:{port}"

    def is_ready() -> bool:
        assert process.poll() is None, "the server ended by itself"
        try:
            return bool(urllib.request.urlopen(f"{address}{path}", timeout=1))
        except OSError:
            return False

    try:
        wait_until(is_ready)
        yield address
    finally:
        process.terminate()
        process.wait(60)
