"""python -m tests.javascript.mutants: does a test notice a fault in a script? One-line faults are
planted in app/**/*.js, one at a time, in a copy of the tree: an operator, a comparison, a number or
a truth value is changed, in a seeded sample. For each, what `make test` runs of JavaScript comes
first, and then the browser tests of `make test-browser` that draw the script.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SEED, COUNT = 0, 10
SWAPPED = {
    " + ": " - ", " - ": " + ", " * ": " / ", " / ": " * ", " < ": " >= ", " > ": " <= ",
    " <= ": " > ", " >= ": " < ", " === ": " !== ", " !== ": " === ", " && ": " || ",
    " || ": " && ", " ?? ": " && ", "true": "false", "false": "true", "Math.min(": "Math.max(",
    "Math.max(": "Math.min(", "Math.floor(": "Math.ceil(", "Math.round(": "Math.floor(",
}  # fmt: skip
# What is no code: comments, texts and regular expressions. Of a template the code is left out, too.
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|(?<=[(=,:] )/(?:\\.|[^/\n])+/', re.S
)
FAULT = re.compile(
    "|".join(map(re.escape, sorted(SWAPPED, key=len, reverse=True))) + r"|(?<![\w.$#])\d+\.?\d*\b"
)
# Folder of a script → the browser tests that draw it.
DRAWN = {
    "components/head_grid": ["head_grid", "palette", "screen", "what_if", "notebook"],
    "components/generation": ["generate", "live_page"],
    "components/matrices": ["inside", "screen", "app"],
    "components/model_map": ["architecture_page"],
    "components/plane": ["query_key_value"],
    "components/word_lines": ["alignment", "live_page"],
    "components/browser": ["learn", "access", "reconnect"],
    "components/controls": ["heads", "generate", "scripts", "inside"],
    "components/paint": ["head_grid", "lessons"],
    "components/grid_page": ["notebook", "export"],
    "components/shared": ["head_grid", "inside", "query_key_value", "generate"],
    "live": ["live_page", "live_lesson"],
    "export": ["bertviz"],
}
TESTED = [["tests/javascript"], ["tests/browser/test_journeys.py"]]  # by make test
BROWSER = "browser and not long"
PATIENCE = 900  # seconds
PYTEST = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-o", "addopts="]


@dataclass(frozen=True)
class Fault:
    """One line of a script, and what is planted in its place."""

    file: str
    number: int
    line: str
    planted: str


def faults(file: str) -> Iterator[Fault]:
    """Every fault that can be planted in a script, in its order."""
    source = (ROOT / file).read_text(encoding="utf-8")
    code = NO_CODE.sub(lambda match: re.sub(r"[^\n]", "\0", match[0]), source)
    for number, (line, bare) in enumerate(
        zip(source.split("\n"), code.split("\n"), strict=True), 1
    ):
        if bare.startswith(("import ", "} from")):
            continue
        for match in FAULT.finditer(bare):
            found = match[0]
            new = SWAPPED.get(found) or str(int(found) + 1 if found.isdigit() else 2 * float(found))
            yield Fault(file, number, line, f"{line[: match.start()]}{new}{line[match.end() :]}")


def sample(count: int, seed: int) -> list[Fault]:
    """So many faults of all scripts, each line as likely as another."""
    files = sorted((ROOT / "app").rglob("*.js"))
    every = [fault for file in files for fault in faults(file.relative_to(ROOT).as_posix())]
    return random.Random(seed).sample(every, count)


def groups(file: str, whole: bool) -> Iterator[tuple[str, list[str]]]:
    """What may notice a fault in a script: by which command, and which tests; `whole`: also the
    browser tests of all other scripts."""
    for paths in TESTED:
        yield "make test", [*paths, "-m", "not long and not browser"]
    folder = file.removeprefix("app/").rpartition("/")[0]
    names = DRAWN.get(folder, [])
    if names:
        near = [f"tests/browser/test_{name}.py" for name in names]
        yield "make test-browser", [*near, "-m", BROWSER]
    if whole or not names:
        yield "make test-browser", ["tests/browser", "-m", BROWSER]


def noticed(fault: Fault, tree: Path, whole: bool) -> tuple[str, str]:
    """By which command a fault was noticed, and how; two empty texts if it was not."""
    path = tree / fault.file
    original = path.read_text(encoding="utf-8")
    lines = original.split("\n")
    lines[fault.number - 1] = fault.planted
    path.write_text("\n".join(lines), encoding="utf-8")
    try:
        for command, tests in groups(fault.file, whole):
            try:
                done = subprocess.run(
                    [*PYTEST, *tests],
                    cwd=tree,
                    env=os.environ | {"OMP_NUM_THREADS": "1"},
                    capture_output=True,
                    text=True,
                    timeout=PATIENCE,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return command, "it hangs"
            if done.returncode == 1:
                said = [
                    line
                    for line in done.stdout.splitlines()
                    if line.startswith(("FAILED", "ERROR"))
                ]
                return command, said[0] if said else "?"
        return "", ""
    finally:
        path.write_text(original, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.javascript.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--skip", type=int, default=0, help="so many, which were planted before")
    parser.add_argument(
        "--whole", action="store_true", help="ask all browser tests, not only those of the script"
    )
    args = parser.parse_args()
    ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", "runs", "screenshots")
    by = {"make test": 0, "make test-browser": 0, "": 0}
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(shutil.copytree(ROOT, Path(folder) / "tree", ignore=ignored))
        for fault in sample(args.count, args.seed)[args.skip :]:
            command, how = noticed(fault, tree, args.whole)
            by[command] += 1
            print(f"{command or 'SURVIVED':17} {fault.file}:{fault.number}  {how}"[:140])
            print(f"  {fault.line.strip()}\n  {fault.planted.strip()}", flush=True)
    cheap, dear = by["make test"], by["make test-browser"]
    print(f"of {args.count}: {cheap} noticed by make test, {dear} more by make test-browser")


if __name__ == "__main__":
    main()
