"""A call that takes too much is stopped, and one that raises is heard."""

import os
import signal
import sys
import time
from multiprocessing import forkserver
from types import ModuleType

import pytest
import torch

from headlight.model.pretrained.weights import CannotLoad
from tests import limits
from tests.limits import ExceededLimit, refusal, under_limits


def spin():
    while True:
        pass


def fill(numbers):
    torch.ones(numbers)


def write(file):
    file.write_bytes(b"-")
    with file.open("r+b") as opened:
        opened.truncate(2 * 10**9)


def expect_imported():
    assert os.getpid() != limits.IMPORTED_BY


def refuse(why):
    raise CannotLoad(why)


def test_time_of_the_processor_is_limited_and_time_by_the_clock_is_not():
    under_limits(time.sleep, 1.5, seconds=1)
    with pytest.raises(ExceededLimit, match=f"exit -{signal.SIGKILL.value}"):
        under_limits(spin, seconds=1)


def test_memory_is_limited_whatever_was_taken_here_before():
    torch.ones(2**27)  # 512 MB
    under_limits(fill, 2**24)
    with pytest.raises(ExceededLimit, match=r"took 2[56]\d MB"):
        under_limits(fill, 2**26)
    with pytest.raises(RuntimeError, match="allocate"):
        under_limits(fill, 2**30)


def test_files_are_limited(tmp_path):
    with pytest.raises((OSError, ExceededLimit)):
        under_limits(write, tmp_path / "file")


def test_the_new_process_imports_nothing_of_the_main_module(monkeypatch, tmp_path):
    """As where a page of the app was run before."""
    script = tmp_path / "page.py"
    script.write_text("raise SystemExit('this was run')")
    page = ModuleType("__main__")
    page.__file__, page.__spec__ = str(script), None
    monkeypatch.setitem(sys.modules, "__main__", page)
    under_limits(time.sleep, 0)
    assert sys.modules["__main__"] is page


def test_an_error_is_raised_here():
    assert refusal(CannotLoad, refuse, "This file is empty.") == "This file is empty."


def test_calls_are_forked_from_what_is_imported_wherever_they_start(tmp_path, monkeypatch):
    forkserver._forkserver._stop()
    monkeypatch.chdir(tmp_path)
    under_limits(expect_imported)
