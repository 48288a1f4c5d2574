"""python -m tests.mutants: does a test notice a fault? One-line faults are planted in model/ or in
app/, one at a time, in a copy of the tree. The tests that run the line come first, the quickest of
them before the others, and stop at the first that fails.

Which faults there are is fixed: an operator, a comparison, a number or a truth value changed on one
line of a function's body; a seeded sample is taken, of every file alike. A few change nothing that
anybody could see: the bar leaves room for them.
"""

import argparse
import ast
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from xml.etree import ElementTree

import coverage

ROOT = Path(__file__).resolve().parent.parent
SEED, EACH, WORKERS = 0, 10, 2
BAR = 0.95  # of the faults are noticed
START, PATIENCE = 60, 3  # seconds to begin, and times what the tests take without a fault
SWAPPED = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Pow: "*",
    ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
    ast.And: "or", ast.Or: "and", ast.BitAnd: "|", ast.BitOr: "&",
}  # fmt: skip
HANGS = "it hangs"
NO_START = "ImportError while loading conftest"  # what pytest says then, on stderr
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
REPORT = "report.xml"


@dataclass(frozen=True)
class Fault:
    """One line of a file, and what is planted in its place."""

    file: str
    number: int
    line: str
    planted: str


def faults(file: str) -> list[Fault]:
    """Every fault that can be planted in a file, in its order."""
    source = (ROOT / file).read_text(encoding="utf-8")
    lines = source.splitlines()
    found = []
    for start, end, new in _edits(ast.parse(source), source):
        (row, left), (last, right) = start, end
        if row == last:
            line = lines[row - 1]
            # ast counts bytes
            before, behind = line.encode()[:left].decode(), line.encode()[right:].decode()
            found.append(Fault(file, row, line, f"{before}{new}{behind}"))
    return found


def _edits(tree: ast.AST, source: str) -> Iterator[tuple]:
    """Where, from and to (line, column), and the new text; in bodies of functions, apart from
    what is said to people: docstrings, messages, asserts."""

    def text(node):
        return ast.get_source_segment(source, node)

    def place(node):
        return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)

    def visit(node, inside):
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.arguments):
            return
        if isinstance(node, ast.keyword) and node.arg == "strict":
            return  # an assertion too: that zip's arguments are equally long
        if inside:
            match node:
                case (
                    ast.BinOp(left=left, op=op, right=right)
                    | ast.Compare(left=left, ops=[op], comparators=[right])
                    | ast.BoolOp(op=op, values=[left, right])
                ) if type(op) in SWAPPED:
                    yield *place(node), f"(({text(left)}) {SWAPPED[type(op)]} ({text(right)}))"
                case ast.UnaryOp(op=ast.Not(), operand=operand):
                    yield *place(node), f"({text(operand)})"
                case ast.Constant(value=bool(value)):
                    yield *place(node), str(not value)
                case ast.Constant(value=int(value)):
                    yield *place(node), str(value + 1)
                case ast.Constant(value=float(value)):
                    yield *place(node), str(value * 2 + 1)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside or isinstance(node, ast.FunctionDef))

    yield from visit(tree, False)


def sample(of: str, each: int, seed: int) -> list[Fault]:
    """`each` faults of every file, or all where there are fewer."""
    chance, chosen = random.Random(seed), []
    for path in sorted((ROOT / of).rglob("*.py")):
        candidates = faults(path.relative_to(ROOT).as_posix())
        chosen += chance.sample(candidates, min(each, len(candidates)))
    return chosen


@dataclass(frozen=True)
class Coverage:
    """What each test runs, and how long it takes."""

    tests: dict[str, dict[int, list[str]]]  # file → line → tests that run it
    seconds: dict[str, float]

    @classmethod
    def measured(cls, tree: Path, folder: str) -> "Coverage":
        """Run the tests of a folder as they are. Raises ValueError where one fails."""
        command = [*PYTEST, "-n", str(WORKERS), f"--cov={folder}", "--cov-context=test"]
        command += ["--cov-report=", f"--junitxml={tree / REPORT}", f"tests/{folder}"]
        if subprocess.run(command, cwd=tree, check=False).returncode:
            raise ValueError("A test fails without any fault.")
        data = coverage.CoverageData(tree / ".coverage")
        data.read()
        tests = {}
        for file in data.measured_files():
            contexts = data.contexts_by_lineno(file)
            tests[Path(file).relative_to(tree).as_posix()] = {
                line: sorted({name.rpartition("|")[0] for name in names} - {""})
                for line, names in contexts.items()
            }
        seconds = {
            f"{case.get('classname').replace('.', '/')}.py::{case.get('name')}": float(
                case.get("time")
            )
            for case in ElementTree.parse(tree / REPORT).iter("testcase")
        }
        return cls(tests, seconds)

    def groups(self, fault: Fault) -> list[list[str]]:
        """The tests that may notice a fault: those that run its line, the quickest first; then the
        files they stand in, whose tests may share what one of them made."""
        here = self.tests.get(fault.file, {}).get(fault.number, [])
        near = sorted(here, key=lambda test: self.seconds.get(test, 0))
        folder = f"tests/{Path(fault.file).parts[0]}"
        files = sorted({test.partition("::")[0] for test in near}) or [folder]
        return [near, files] if near else [files]

    def limit(self, tests: list[str]) -> float:
        """Seconds after which tests, or files and folders of them, hang."""
        return START + PATIENCE * sum(
            seconds for test, seconds in self.seconds.items() if test.startswith(tuple(tests))
        )


def run_tests(tests: list[str], tree: Path, limit: float) -> str:
    """What the first test that failed says; empty where all pass."""
    command = [*PYTEST, "-x", *tests]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return HANGS
    if done.stderr.startswith(NO_START):
        return done.stderr.splitlines()[0]
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    # Where pytest could not find a test by its name, its file is run next.
    return failed[0] if done.returncode and failed else ""


def noticed(fault: Fault, tree: Path, baseline: Coverage) -> str:
    """How the tests noticed a fault; empty if they did not."""
    path = tree / fault.file
    original = path.read_text(encoding="utf-8")
    lines = original.splitlines(keepends=True)
    lines[fault.number - 1] = fault.planted + "\n"
    path.write_text("".join(lines), encoding="utf-8")
    try:
        tried = (run_tests(some, tree, baseline.limit(some)) for some in baseline.groups(fault))
        return next(filter(None, tried), "")
    finally:
        path.write_text(original, encoding="utf-8")


def copies(folder: Path) -> Iterator[Path]:
    """A copy of the tree for each worker."""
    ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", "runs", "screenshots")
    for number in range(WORKERS):
        yield Path(shutil.copytree(ROOT, folder / str(number), symlinks=True, ignore=ignored))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--of", choices=["model", "app"], default="model", help="where")
    parser.add_argument("--each", type=int, default=EACH, help="faults of a file")
    parser.add_argument("--most", type=int, help="of them all, a sample of this many")
    parser.add_argument("--seed", type=int, default=SEED)
    about = "files whose path has this in it, as a regular expression"
    parser.add_argument("--only", default="", metavar="PATH", help=about)
    args = parser.parse_args()
    chosen = sample(args.of, args.each, args.seed)
    chosen = [fault for fault in chosen if re.search(args.only, fault.file)]
    if args.most is not None:
        chosen = random.Random(args.seed).sample(chosen, min(args.most, len(chosen)))
    trees: Queue[Path] = Queue()
    survivors, hanging = [], 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        for tree in copies(Path(folder)):
            trees.put(tree)
        try:
            baseline = Coverage.measured(Path(folder) / "0", args.of)
        except ValueError as error:
            print(error)
            return 2

        def one(fault):
            tree = trees.get()
            try:
                return fault, noticed(fault, tree, baseline)
            finally:
                trees.put(tree)

        for fault, message in pool.map(one, chosen):
            where = f"{fault.file}:{fault.number}"
            hanging += message == HANGS
            if message:
                print(f"noticed  {where}  {message}"[:120], flush=True)
            else:
                survivors.append(fault)
                planted = f"  {fault.line.strip()}\n  {fault.planted.strip()}"
                print(f"SURVIVED {where}\n{planted}", flush=True)
    share = 1 - len(survivors) / max(1, len(chosen))
    print(
        f"{share:.1%} of {len(chosen)} faults noticed, {hanging} of them because the tests hang; "
        f"{len(survivors)} survived."
    )
    return int(share < BAR)


if __name__ == "__main__":
    sys.exit(main())
