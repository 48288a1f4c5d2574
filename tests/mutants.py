"""python -m tests.mutants: does a test notice a fault? One-line faults are planted in model/, one
at a time, in a copy of the tree; the nearest tests run first, and stop at the first that fails.

Which faults there are is fixed: an operator, a comparison, a number or a truth value changed on one
line of a function's body; a seeded sample is taken, of every module alike. EXCUSED are those that
change nothing, each with its proof.
"""

import argparse
import ast
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parent.parent
SEED, EACH, WORKERS, LONGEST = 0, 10, 2, 300  # seconds that the tests of one fault may take
SWAPPED = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Pow: "*",
    ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
    ast.And: "or", ast.Or: "and", ast.BitAnd: "|", ast.BitOr: "&",
}  # fmt: skip
# (file, line without its indent, what stands there instead) → why nothing changes
EXCUSED: dict[tuple[str, str, str], str] = {}


@dataclass(frozen=True)
class Fault:
    """One line of a file, and what is planted in its place."""

    file: str
    number: int
    line: str
    planted: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.line.strip(), self.planted.strip()


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
        if inside:
            match node:
                case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPPED:
                    yield *place(node), f"{text(left)} {SWAPPED[type(op)]} {text(right)}"
                case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in SWAPPED:
                    yield *place(node), f"{text(left)} {SWAPPED[type(op)]} {text(right)}"
                case ast.BoolOp(op=op, values=[left, right]):
                    yield *place(node), f"{text(left)} {SWAPPED[type(op)]} {text(right)}"
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


def sample(each: int, seed: int) -> list[Fault]:
    """`each` faults of every module, or all where there are fewer."""
    chance, chosen = random.Random(seed), []
    for path in sorted((ROOT / "model").rglob("*.py")):
        candidates = faults(path.relative_to(ROOT).as_posix())
        chosen += chance.sample(candidates, min(each, len(candidates)))
    return chosen


def tests_for(file: str) -> list[str]:
    """The tests of a module, those named like it first."""
    stem = Path(file).stem
    every = sorted(
        path.relative_to(ROOT).as_posix() for path in (ROOT / "tests/model").rglob("test_*.py")
    )
    words = {f"from model.{'.'.join(Path(file).with_suffix('').parts[1:])} ", f" {stem}"}

    def distance(test):
        text = (ROOT / test).read_text(encoding="utf-8")
        named = Path(test).stem == f"test_{stem}"
        beside = Path(test).parent.name == Path(file).parent.name
        return not named, not any(word in text for word in words), not beside, len(text)

    return sorted(every, key=distance)


def noticed(fault: Fault, tree: Path) -> str:
    """How the tests noticed a fault; empty if they did not."""
    path = tree / fault.file
    original = path.read_text(encoding="utf-8")
    lines = original.splitlines(keepends=True)
    lines[fault.number - 1] = fault.planted + "\n"
    path.write_text("".join(lines), encoding="utf-8")
    near, far = (lambda tests: (tests[:3], tests[3:]))(tests_for(fault.file))
    start = time.monotonic()
    try:
        for group in (near, far):
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *group]
            left = LONGEST - (time.monotonic() - start)
            try:
                done = subprocess.run(
                    command, cwd=tree, capture_output=True, text=True, timeout=left, check=False
                )
            except subprocess.TimeoutExpired:
                return "it takes too long"
            if done.returncode:
                return (done.stdout.strip().splitlines() or ["it cannot be run"])[-1]
        return ""
    finally:
        path.write_text(original, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--each", type=int, default=EACH, help="faults of a module")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", default="", metavar="PATH", help="files whose path holds this")
    args = parser.parse_args()
    chosen = [fault for fault in sample(args.each, args.seed) if args.only in fault.file]
    trees: Queue[Path] = Queue()
    survivors = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        for number in range(WORKERS):
            tree = Path(folder) / str(number)
            ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", "runs", "screenshots")
            shutil.copytree(ROOT, tree, ignore=ignored)
            trees.put(tree)

        def one(fault):
            tree = trees.get()
            try:
                return fault, noticed(fault, tree)
            finally:
                trees.put(tree)

        for fault, how in pool.map(one, chosen):
            where = f"{fault.file}:{fault.number}"
            if not how and fault.key not in EXCUSED:
                survivors.append(fault)
                print(
                    f"SURVIVED {where}\n  {fault.line.strip()}\n  {fault.planted.strip()}",
                    flush=True,
                )
            else:
                print(f"noticed  {where}  {how or EXCUSED[fault.key]}"[:120], flush=True)
    share = 1 - len(survivors) / max(1, len(chosen))
    print(f"{share:.1%} of {len(chosen)} faults noticed; {len(survivors)} survived.")
    return len(survivors) > 0.05 * len(chosen)


if __name__ == "__main__":
    sys.exit(main())
