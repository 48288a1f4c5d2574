"""Calls that hostile input may lead astray, tried in a process of their own under limits, so that a
fault fails a test and cannot take the machine with it."""

import multiprocessing
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType

import pytest
import torch

ADDRESS_SPACE, FILE_SIZE = 4_000_000_000, 1_000_000_000  # bytes
PATIENCE = 120  # seconds by the clock, for what waits for something
MEGABYTE = 2**20
ROOT = Path(__file__).resolve().parent.parent
IMPORTED_BY = os.getpid()  # in a call, the server where it had imported this before the fork

# Forked from a process that has imported what takes long and has computed nothing, so that no lock
# of PyTorch's threads is copied while it is held.
_processes = multiprocessing.get_context("forkserver")
# PyTorch imports the last when it first builds a model without numbers, and takes a second.
_processes.set_forkserver_preload(
    ["headlight.model.checkpoint", "gguf", "tests.limits", "torch._dynamo"]
)


class ExceededLimit(AssertionError):
    pass


def under_limits(function: Callable, *arguments, seconds: int = 10, megabytes: int = 200) -> None:
    """Calls the function in a new process and raises what it raises; or ExceededLimit where it
    takes more seconds of processor time, or its memory grows by more."""
    receiver, sender = _processes.Pipe(duplex=False)
    child = forked(_call, sender, seconds, function, arguments)
    sender.close()
    try:
        outcome = receiver.recv() if receiver.poll(PATIENCE) else None
    except EOFError:
        outcome = None
    if outcome is None:
        child.kill()
        child.join()
        raise ExceededLimit(f"The call did not end within {seconds} s (exit {child.exitcode}).")
    child.join()
    error, grown = outcome
    if grown > megabytes * MEGABYTE:
        raise ExceededLimit(f"The call took {grown / MEGABYTE:,.0f} MB.") from error
    if error is not None:
        raise error


def forked(function: Callable, *arguments) -> multiprocessing.Process:
    """Calls the function in a new process, without limits, and does not wait for it."""
    _start_server()
    child = _processes.Process(target=function, args=arguments, daemon=True)
    with _no_main_module():
        child.start()
    return child


def refusal(kind: type[Exception], function: Callable, *arguments) -> str:
    """What the error says in which the call ends under the limits."""
    with pytest.raises(kind) as error:
        under_limits(function, *arguments)
    return str(error.value)


@contextmanager
def _no_main_module() -> Iterator[None]:
    """A new process runs the file of the main module first. In a test that is none of ours: where a
    page was run before, it is that page, which imports the whole app."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _start_server() -> None:
    """Where it does not run yet. After a test has changed the folder it finds our modules by
    PYTHONPATH alone. Where it does not, nothing is said, and each call takes seconds to import."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        forkserver.ensure_running()


def _call(sender: Connection, seconds: int, function: Callable, arguments: tuple) -> None:
    torch.set_num_threads(1)
    for limit, most in (
        (resource.RLIMIT_AS, ADDRESS_SPACE),
        (resource.RLIMIT_FSIZE, FILE_SIZE),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))
    before = _peak()
    error = None
    try:
        function(*arguments)
    except Exception as raised:
        error = raised
    sender.send((error, _peak() - before))


def _peak() -> int:
    """Bytes; a forked process begins with what it holds, not with its parent's peak."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
