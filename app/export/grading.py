"""The points of an assignment: what its conftest.py gives to pytest.

Each test runs in a process of its own, and only the answer of that process counts. So a file that
ends Python, or that is judged without end, loses that test alone. The judge's names are looked up
before the student's code runs, and points are lost where one of them was replaced.
"""

import importlib.util
import multiprocessing
import secrets
import sys
import traceback
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

from headlight.app.export import check
from headlight.model.checking.calling import Outcome, message_of, said, where

LONGEST_ANSWER = 1_000_000  # bytes
LONGEST = 300  # seconds for one test, which may load a model on a slow machine
# Elsewhere a fork may not live with what PyTorch has loaded.
if sys.platform == "linux":
    CONTEXT = multiprocessing.get_context("fork")
else:
    CONTEXT = multiprocessing.get_context("spawn")
ENDED = "Your code ended Python before it was judged. Does it call exit?"


class Lost(Exception):
    """Why a test is not passed: all that is shown of it."""


def pytest_configure(config):
    config.addinivalue_line("markers", "points(n): what a test is worth")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not pyfuncitem.get_closest_marker("points"):
        return None
    reading, writing = CONTEXT.Pipe(duplex=False)
    right = secrets.token_bytes()  # which is not to be guessed
    names = pyfuncitem.module.__name__, str(pyfuncitem.path), pyfuncitem.name
    child = CONTEXT.Process(target=_run, args=(writing, right, *names))
    child.start()
    writing.close()
    answer = ENDED.encode()
    try:
        if reading.poll(LONGEST):
            answer = reading.recv_bytes(LONGEST_ANSWER)
        else:
            answer = f"Your code ran longer than {LONGEST} seconds.".encode()
    except (EOFError, OSError):
        pass  # no answer, or one that is not ours
    finally:
        child.kill()
        child.join()
    if answer != right:
        raise Lost(answer.decode("utf-8", "replace"))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    mark = item.get_closest_marker("points")
    report.user_properties.append(("points", mark.args[0] if mark else 0))
    if report.failed:
        why = call.excinfo.value
        report.longrepr = str(why) if isinstance(why, Lost) else call.excinfo.exconly()
    return report


def pytest_terminal_summary(terminalreporter):
    def points(*outcomes):
        reports = [r for name in outcomes for r in terminalreporter.stats.get(name, [])]
        found = [p for r in reports for p in getattr(r, "user_properties", ())]
        return sum(n for name, n in found if name == "points")

    got = points("passed")
    terminalreporter.write_line(f"{got} of {got + points('failed', 'error')} points")


def _run(writing, right: bytes, name: str, path: str, test: str) -> None:
    """In a process of its own."""
    send = writing.send_bytes
    torch.set_num_threads(1)  # the parent's threads are not there after a fork
    module = sys.modules.get(name) or _loaded(name, path)
    vars(module)["check"] = SimpleNamespace(**vars(check))  # of which no name can be replaced
    judge = _callables()
    try:
        vars(module)[test]()
        lines = []
    except BaseException as error:
        lines = _lines(error, Path(path).parents[1])
    now = _callables()
    if replaced := next((key for key, value in judge.items() if now.get(key) is not value), ""):
        lines = [f"Your code replaces {replaced}, by which it is judged."]
    send("\n".join(lines).encode() if lines else right)


def _loaded(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _callables() -> dict[str, object]:
    """Every function and class of ours, and what these classes have."""
    found: dict[str, object] = {}
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] != "headlight" or module is None:
            continue
        for key, value in [*vars(module).items()]:
            if callable(value):
                found[f"{name}.{key}"] = value
            if isinstance(value, type) and value.__module__ == name:
                found |= {f"{name}.{key}.{k}": v for k, v in vars(value).items() if callable(v)}
    return found


def _lines(error: BaseException, folder: Path) -> list[str]:
    """Where it was in the files of the folder, and a sentence."""
    places = [
        f"{Path(frame.filename).name}:{frame.lineno}: {frame.line}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(folder)
    ]
    if isinstance(error, SyntaxError):
        line, text, file = where(error, "")
        places.append(f"{Path(file).name}:{line}: {text}")
    is_ours = isinstance(error, AssertionError | ValueError)
    return [*places, (is_ours and str(error)) or _sentence(error)]


def _sentence(error: BaseException) -> str:
    if isinstance(error, SystemExit | KeyboardInterrupt):
        return ENDED
    return said(Outcome(error=error)) or message_of(error)
