"""Calls that hostile input may lead astray, tried in a process of their own under limits, so that a
fault fails a test and cannot take the machine with it."""

import math
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
RESET_PEAK = Path("/proc/self/clear_refs")  # of Linux; see man 5 proc
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
    (error,) = outcomes(function, [arguments], seconds, megabytes)
    if error is not None:
        raise error


def outcomes(
    function: Callable, calls: Iterable[tuple], seconds: int = 10, megabytes: int = 200
) -> list[Exception | None]:
    """What each call of the function raises, as `under_limits` does, or None: the calls, their
    arguments, are made one after another. They share a process, whose start takes longer than most
    of them; but each has its own limits, and after one that exceeds them there is a new process."""
    rest, found = list(calls), []
    together = len(rest) if RESET_PEAK.exists() else 1
    while rest:
        receiver, sender = _processes.Pipe(duplex=False)
        some, rest = rest[:together], rest[together:]
        child = forked(_call_each, sender, seconds, function, some)
        sender.close()
        while some:
            some.pop(0)
            found.append(_outcome(receiver, child, seconds, megabytes))
            if isinstance(found[-1], ExceededLimit):
                break
        rest = some + rest
        child.kill()
        child.join()
        receiver.close()
    return found


def _outcome(
    receiver: Connection, child: multiprocessing.Process, seconds: int, megabytes: int
) -> Exception | None:
    try:
        outcome = receiver.recv() if receiver.poll(PATIENCE) else None
    except EOFError:
        outcome = None
    if outcome is None:
        child.kill()
        child.join()
        return ExceededLimit(f"The call did not end within {seconds} s (exit {child.exitcode}).")
    error, taken, grown = outcome
    exceeded = None
    if taken > seconds:
        exceeded = ExceededLimit(f"The call took {taken:.1f} s.")
    if grown > megabytes * MEGABYTE:
        exceeded = ExceededLimit(f"The call took {grown / MEGABYTE:,.0f} MB.")
    if exceeded:
        exceeded.__cause__ = error
    return exceeded or error


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


def refusals(
    kind: type[Exception], function: Callable, cases: Mapping[str, tuple]
) -> Iterator[tuple[str, str]]:
    """As `refusal` for each case, a name → arguments: its name and what the error says."""
    for name, error in zip(cases, outcomes(function, cases.values()), strict=True):
        assert isinstance(error, kind), f"{name}: {error!r}"
        yield name, str(error)


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


def _call_each(
    sender: Connection, seconds: int, function: Callable, calls: Sequence[tuple]
) -> None:
    torch.set_num_threads(1)
    for limit, most in (
        (resource.RLIMIT_AS, ADDRESS_SPACE),
        (resource.RLIMIT_FSIZE, FILE_SIZE),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))
    for i, arguments in enumerate(calls):
        start = time.process_time()
        # In whole seconds, so that the time is looked at afterwards too.
        end = math.ceil(start) + seconds if i else seconds
        _, most = resource.getrlimit(resource.RLIMIT_CPU)  # once lowered it stays
        resource.setrlimit(resource.RLIMIT_CPU, (end, most))
        if RESET_PEAK.exists():
            RESET_PEAK.write_text("5")
        before = _peak()
        error = None
        try:
            function(*arguments)
        except Exception as raised:
            error = raised
        sender.send((error, time.process_time() - start, _peak() - before))


def _peak() -> int:
    """Bytes since the last reset; a forked process begins with what it holds, not with its parent's
    peak."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
