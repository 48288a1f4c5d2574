"""A test that hangs fails alone and by its name, and what fails only once is listed as flaky."""

import json
import os
import subprocess
import sys

import pytest

from tests import suite
from tests.conftest import ROOT

ALONE = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
WORKERS = ["-n", "2", "--dist", "loadfile"]
HANGS = """
import subprocess, threading, time
import pytest

@pytest.mark.timeout(1)
@pytest.mark.parametrize("what", ["sleep", "thread", "process"])
def test_hangs(what):
    if what == "sleep":
        time.sleep(600)
    if what == "thread":
        threading.Event().wait()
    if what == "process":
        subprocess.run(["sleep", "600"])

@pytest.mark.long
def test_long():
    time.sleep(2)

def test_passes_after_them():
    pass
"""
DEAF = """
import signal, time

def test_hangs():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    time.sleep(600)

def test_passes_after_it():
    pass
"""
FLAKY = """
from pathlib import Path

def test_passes():
    pass

def test_fails_once():
    mark = Path(__file__).with_name("mark")
    if not mark.exists():
        mark.touch()
        raise AssertionError("the first time")

def test_fails_always():
    raise AssertionError("every time")
"""


@pytest.fixture
def run(tmp_path):
    """Runs a file of tests as `make test` does; exit status and output."""

    def run(tests, *arguments):
        (tmp_path / "test_file.py").write_text(tests)
        # Those alone: to start takes longer with all plugins than to run.
        plugins = [f"-p{name}" for name in ("tests.suite", "xdist", "pytest_timeout")]
        command = [sys.executable, "-m", "pytest", *plugins, "--rootdir=."]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
        done = subprocess.run(
            [*command, "-c", ROOT / "pyproject.toml", *arguments, "test_file.py"],
            cwd=tmp_path, env=environment | ALONE,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    return run


@pytest.mark.parametrize("workers", [[], WORKERS], ids=["alone", "two workers"])
def test_one_that_hangs_fails_alone_and_by_its_name(run, workers):
    status, output = run(HANGS, *workers)
    assert status == 1 and "3 failed, 1 passed" in output
    for what in ("sleep", "thread", "process"):
        assert f"FAILED test_file.py::test_hangs[{what}] - Failed: Timeout (>1.0s)" in output


def test_one_that_no_signal_reaches_fails_alone_too(run):
    status, output = run(DEAF, *WORKERS, "--timeout", "1", "-o", "faulthandler_timeout=2")
    assert status == 1 and "1 failed, 1 passed" in output
    assert "crashed while running 'test_file.py::test_hangs'" in output


def test_long_ones_have_no_limit(run):
    status, output = run(HANGS, "-m", "long", "--timeout", "1")
    assert status == 0 and "1 passed" in output


def test_what_fails_only_once_is_flaky_and_the_rest_stays_red(run):
    assert run(FLAKY, *WORKERS)[0] == 1
    status, output = run(FLAKY, "--last-failed", "--second-try")
    assert status == 1 and "1 failed, 1 passed" in output
    assert output.partition("flaky: ")[2].splitlines()[1:2] == ["test_file.py::test_fails_once"]


def test_a_run_that_only_flaky_ones_failed_is_green_at_last(run):
    tests = FLAKY.replace('raise AssertionError("every time")', "pass")
    assert run(tests)[0] == 1
    status, output = run(tests, "--last-failed", "--second-try")
    assert status == 0 and "test_file.py::test_fails_once" in output.partition("flaky: ")[2]


def test_measured_files_stand_beside_those_of_other_runs(tmp_path, monkeypatch):
    table = tmp_path / "durations.json"
    table.write_text(
        '{"tests/test_gone.py": 9, "tests/test_suite.py": 5, "tests/test_words.py": 2}'
    )
    monkeypatch.setattr(suite, "DURATIONS", table)
    stopwatch = suite.Stopwatch()
    stopwatch.seconds["tests/test_words.py"] = 7.04
    stopwatch.pytest_sessionfinish()
    expected = [("tests/test_words.py", 7.0), ("tests/test_suite.py", 5)]
    assert [*json.loads(table.read_text()).items()] == expected
