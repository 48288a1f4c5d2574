"""python -m tests.check: the tests nearest to what changed since the last commit, for a minute.

Nearest are the changed files of tests themselves and those named after a changed module, then those
that name its file or import it, through few others before through many. What no longer fits into
the minute is named and left to the whole suites. `--read REPORT` takes the seconds of each file
from a report of pytest's in JUnit's format.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import grimp

ROOT = Path(__file__).resolve().parent.parent
DURATIONS = Path(__file__).with_name("durations.json")  # file → seconds of its tests
SECONDS = 60.0  # of tests; two workers share them
UNMEASURED = 10.0  # seconds that a new file of tests is taken to need
# Draws every page by its file's name, which no import shows.
EVERY_PAGE = "tests/app/test_every_page.py"


def changed() -> list[str]:
    """Files that differ from the last commit, new ones too, as git names them."""
    commands = ["diff --name-only --relative HEAD", "ls-files --others --exclude-standard"]
    outputs = (
        subprocess.run(
            ["git", *command.split()], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for command in commands
    )
    return [line for output in outputs for line in output.splitlines()]


def distances(files: list[str]) -> dict[str, int]:
    """Files of tests that the changed files reach → how many imports away the nearest is."""
    graph = grimp.build_graph("headlight", "tests", include_external_packages=False)
    tests = {path_of(module): module for module in graph.modules if is_test(module)}
    nearest = {}
    for file in files:
        for test, distance in _distances(file, tests, graph):
            nearest[test] = min(distance, nearest.get(test, distance))
    return nearest


def _distances(file: str, tests: dict[str, str], graph: grimp.ImportGraph) -> Iterator:
    module = module_of(file)
    if file in tests:
        yield file, 0
        return
    if file.startswith("app/") and EVERY_PAGE in tests:
        yield EVERY_PAGE, 2
    for test, name in tests.items():
        if Path(test).stem.startswith(f"test_{module.rpartition('.')[2]}"):
            yield test, 0
        elif file.removeprefix("app/") in (ROOT / test).read_text(encoding="utf-8"):
            yield test, 1
        elif module in graph.modules and (chain := graph.find_shortest_chain(name, module)):
            yield test, len(chain) - 1


def within(
    seconds: float, nearest: dict[str, int], durations: dict[str, float]
) -> tuple[list[str], list[str]]:
    """The nearest files that take no longer together, and the rest."""
    chosen, rest = [], []
    for test in sorted(nearest, key=lambda test: (nearest[test], durations.get(test, UNMEASURED))):
        took = durations.get(test, UNMEASURED)
        (chosen if took <= seconds else rest).append(test)
        seconds -= took if took <= seconds else 0
    return chosen, rest


def module_of(file: str) -> str:
    """Of a script or style sheet, the package that it lies in."""
    path = Path(file)
    parts = path.with_suffix("").parts if path.suffix == ".py" else path.parent.parts
    name = ".".join(parts).removesuffix(".__init__")
    return name if parts[0] == "tests" else f"headlight.{name}"


def path_of(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def is_test(module: str) -> bool:
    return module.rpartition(".")[2].startswith("test_")


def read(report: Path) -> dict[str, float]:
    """File → seconds of its tests, of a report in JUnit's format."""
    seconds = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        module = case.get("classname", "")
        seconds[path_of(module)] += float(case.get("time", 0))
    return {file: round(taken, 1) for file, taken in seconds.most_common()}


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--read"]:
        DURATIONS.write_text(json.dumps(read(Path(arguments[1])), indent=0) + "\n")
        return 0
    files = [file for file in changed() if file.startswith(("app/", "model/", "tests/"))]
    chosen, rest = within(SECONDS, distances(files), json.loads(DURATIONS.read_text()))
    if rest:
        print(f"{len(rest)} files of tests do not fit into a minute: {', '.join(rest)}")
    if not chosen:
        print("No test is near to what changed.")
        return 0
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-m", "not long"]
    return subprocess.run([*command, *chosen], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
