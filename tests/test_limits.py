"""A call that takes too much is stopped, and one that raises is heard."""

import os
import re
import signal
import subprocess
import sys
import time
from multiprocessing import forkserver
from types import ModuleType

import pytest
import torch

from headlight.model.pretrained.weights import CannotLoad
from tests import limits
from tests.limits import ROOT, ExceededLimit, outcomes, refusal, refusals, under_limits


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


def refuse_some(why):
    if why:
        raise CannotLoad(why)


def test_time_of_the_processor_is_limited_and_time_by_the_clock_is_not():
    under_limits(time.sleep, 1.5, seconds=1)
    with pytest.raises(ExceededLimit, match=f"exit -{signal.SIGXCPU.value}"):
        under_limits(spin, seconds=1)


def test_memory_is_limited_whatever_was_taken_here_before():
    torch.ones(2**26)  # as much as the largest call below takes
    under_limits(fill, 2**24)
    with pytest.raises(ExceededLimit, match=r"took 2[56]\d MB"):
        under_limits(fill, 2**26)
    with pytest.raises(RuntimeError, match="allocate"):
        under_limits(fill, 2**30)


def act(what, file):
    acts = {"spin": spin, "large": lambda: fill(2**26), "small": lambda: fill(2**24),
            "write": lambda: write(file), "refuse": lambda: refuse("No.")}  # fmt: skip
    acts.get(what, lambda: None)()


def test_calls_that_share_a_process_have_limits_of_their_own(tmp_path):
    """Each is heard, whatever those before it took; and what two take together is no matter."""
    calls = ["refuse", "small", "pass", "large", "small", "large", "spin", "write", "refuse"]
    found = outcomes(act, [(what, tmp_path / "file") for what in calls], seconds=1, megabytes=100)
    for what, error in zip(calls, found, strict=True):
        if what in ("pass", "small"):
            assert error is None, what
        elif what == "refuse":
            assert type(error) is CannotLoad and str(error) == "No."
        elif what == "write":
            assert isinstance(error, (OSError, ExceededLimit))
        else:
            said = "took 2[56]. MB" if what == "large" else f"exit -{signal.SIGXCPU.value}"
            assert isinstance(error, ExceededLimit) and re.search(said, str(error)), what


def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_call_that_takes_little_more_than_its_time_is_heard_too():
    short, long = outcomes(work, [(0.1,), (1.05,)], seconds=1)
    assert short is None and isinstance(long, ExceededLimit)


def test_one_that_is_not_refused_is_named():
    cases = {"one": ("No.",), "two": ("Never.",)}
    assert dict(refusals(CannotLoad, refuse, cases)) == {"one": "No.", "two": "Never."}
    with pytest.raises(AssertionError, match="two: None"):
        dict(refusals(CannotLoad, refuse_some, {"one": ("No.",), "two": ("",)}))


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


def test_calls_are_forked_from_what_is_imported():
    under_limits(expect_imported)


def test_the_server_finds_our_modules_wherever_it_is_started(tmp_path, monkeypatch):
    """Without starting another, which takes seconds."""
    paths = []
    monkeypatch.setattr(
        forkserver, "ensure_running", lambda: paths.append(os.environ["PYTHONPATH"])
    )
    limits._start_server()
    names = ("tests.limits", "headlight")
    code = f"from importlib.util import find_spec as f; print(*(f(n).origin for n in {names}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": paths[0]},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [limits.__file__, str(ROOT / "headlight.py")]
