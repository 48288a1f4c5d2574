"""How the suite is run: the order of files, the time that a test may take, and what is said of a
test that failed among the others and passed alone."""

import json
from collections import Counter
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

# File → seconds of its tests, as `make durations` measured them.
DURATIONS = Path(__file__).with_name("durations.json")
ROOT = Path(__file__).resolve().parent.parent
BROWSER_TIMEOUT = 60  # seconds; of the others, `timeout` in pyproject.toml


def pytest_addoption(parser):
    parser.addoption(
        "--second-try",
        action="store_true",
        help="list the tests that pass as flaky; with --last-failed, after a run that failed",
    )
    parser.addoption(
        "--write-durations",
        action="store_true",
        help=f"write the seconds of each file's tests to {DURATIONS.name}, beside those of others",
    )


def pytest_configure(config):
    if config.getoption("write_durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Stopwatch())


@pytest.hookimpl(trylast=True)  # what is left of them when others were deselected
def pytest_collection_modifyitems(items):
    """The longest files first, and first of all those that nobody measured yet: each worker takes
    the next file when it has done one, so that both end with a short one."""
    seconds = json.loads(DURATIONS.read_text())
    items.sort(key=lambda item: -seconds.get(file_of(item.nodeid), float("inf")))
    for item in items:
        if item.get_closest_marker("timeout"):
            continue
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.timeout(0))  # no limit
        elif item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.timeout(BROWSER_TIMEOUT))


def pytest_terminal_summary(terminalreporter, config):
    if not config.getoption("second_try"):
        return
    stats = terminalreporter.stats
    failed = {report.nodeid for key in ("failed", "error") for report in stats.get(key, ())}
    flaky = [report.nodeid for report in stats.get("passed", ()) if report.nodeid not in failed]
    if flaky:
        terminalreporter.section("flaky: failed among the others, passed alone")
        for test in flaky:
            terminalreporter.write_line(test)


class Scheduler(LoadFileScheduling):
    """Tries a test once, also where it ends its worker: xdist 3.8 gives it to one worker after
    another, and hangs where the files that the worker held are otherwise done."""

    def remove_node(self, node):
        work = self.assigned_work[node]
        crashed = next((test for file in work.values() for test in file if not file[test]), None)
        for file in work.values():
            if crashed in file:
                file[crashed] = True
        self.assigned_work[node] = {
            name: file for name, file in work.items() if not all(file.values())
        }
        super().remove_node(node)
        return crashed


@pytest.hookimpl(optionalhook=True)  # pytest -p no:xdist
def pytest_xdist_make_scheduler(config, log):
    return Scheduler(config, log) if config.getoption("dist") == "loadfile" else None


class Stopwatch:
    """Of a run, in the process that collects what the workers report."""

    def __init__(self):
        self.seconds = Counter()

    def pytest_runtest_logreport(self, report):
        self.seconds[file_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self):
        before = json.loads(DURATIONS.read_text())
        there = {file: seconds for file, seconds in before.items() if (ROOT / file).exists()}
        rounded = there | {file: round(seconds, 1) for file, seconds in self.seconds.items()}
        longest = sorted(rounded.items(), key=lambda item: -item[1])
        DURATIONS.write_text(json.dumps(dict(longest), indent=0) + "\n")


def file_of(test: str) -> str:
    return test.partition("::")[0]
