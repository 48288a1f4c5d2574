"""Servers that tests start."""

import socket
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import wait_until

# Writes down every name that a server looks up and every address that it connects or binds to.
HOOK = """
import os, sys
def write(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.bind", "socket.sendto"):
        where = args[0] if event == "socket.getaddrinfo" else args[1]
        host = where[0] if isinstance(where, tuple) else where
        with open(os.environ["HEADLIGHT_AUDIT"], "a") as file:
            file.write(f"{event} {host}\\n")
sys.addaudithook(write)
"""
LOCAL = "127.0.0.1", "localhost", "::1", "None"


def audited(folder: Path) -> dict[str, str]:
    """The environment in which a Python process writes its socket calls to folder/audit."""
    (folder / "sitecustomize.py").write_text(HOOK)
    return {"PYTHONPATH": str(folder), "HEADLIGHT_AUDIT": str(folder / "audit")}


def asked_outside(folder: Path) -> list[list[str]]:
    """Of the calls that `audited` wrote, those that leave this machine or let others in."""
    events = [line.split() for line in (folder / "audit").read_text().splitlines()]
    return [event for event in events if event[-1] not in LOCAL]


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
