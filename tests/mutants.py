"""python -m tests.mutants: does a test notice a fault? One-line faults are planted in model/, in
app/ or in its scripts, one at a time, in a copy of the tree. The tests that run the line come
first, the quickest of them before the others, and stop at the first that fails.

Which faults there are is fixed: an operator, a comparison, a number or a truth value changed on one
line of a function's body, or of a script; a seeded sample is taken, of every file alike. EXCUSED
are those that change nothing, each with its proof.
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
LONGEST = 900  # seconds of tests of scripts
SWAPPED = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Pow: "*",
    ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
    ast.And: "or", ast.Or: "and", ast.BitAnd: "|", ast.BitOr: "&",
}  # fmt: skip
SWAPPED_IN_SCRIPTS = {
    " + ": " - ", " - ": " + ", " * ": " / ", " / ": " * ", " < ": " >= ", " > ": " <= ",
    " <= ": " > ", " >= ": " < ", " === ": " !== ", " !== ": " === ", " && ": " || ",
    " || ": " && ", " ?? ": " && ", "true": "false", "false": "true", "Math.min(": "Math.max(",
    "Math.max(": "Math.min(", "Math.floor(": "Math.ceil(", "Math.round(": "Math.floor(",
}  # fmt: skip
IN_SCRIPTS = re.compile(
    "|".join(map(re.escape, sorted(SWAPPED_IN_SCRIPTS, key=len, reverse=True)))
    + r"|(?<![\w.$#])\d+\.?\d*\b"
)
# Comments, texts and regular expressions. Of a template the code is left out, too.
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|(?<=[(=,:] )/(?:\\.|[^/\n])+/', re.S
)
OF_SCRIPTS = [  # what runs them: by make test, and by make test-browser
    ["tests/javascript"],
    ["tests/browser/test_journeys.py"],
    ["tests/browser", "-m", "browser and not long"],
]
HANGS = "it hangs"
NO_START = "ImportError while loading conftest"  # what pytest says then, on stderr
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
REPORT = "report.xml"
# (file, line without its indent, what stands there instead) → why nothing changes
EXCUSED: dict[tuple[str, str, str], str] = {
    (
        "model/surveys/trace_command.py",
        "ThreadPoolExecutor(1) as pool,",
        "ThreadPoolExecutor(2) as pool,",
    ): "what was submitted has ended before the next is: a second thread never has work",
    (
        "model/decoding/search.py",
        "best, where = total.topk(min(2 * beam, total.shape[1]))",
        "best, where = total.topk(min(3 * beam, total.shape[1]))",
    ): "at most `beam` of the best are eos, so the first 2 · beam hold those that go on",
    (
        "model/analysis/positions.py",
        "ids, shares = trace.most_probable(1)",
        "ids, shares = trace.most_probable(2)",
    ): "the first column alone is read: the likeliest, or of equals one of them",
    (
        "model/analysis/reading.py",
        'characters = [" "] * max((end for _, end in encoding.offsets), default=0)',
        'characters = [" "] * max((end for _, end in encoding.offsets), default=1)',
    ): "of an encoding without tokens, which has no words, the text is not read",
    (
        "model/surveys/clearest.py",
        "sign = 1 if habit.less else -1",
        "sign = 2 if habit.less else -1",
    ): "all that is sorted is doubled, exactly: the order is the same",
    (
        "model/memory.py",
        "settings = {MMAP_MAX: 0, TRIM_THRESHOLD: LARGEST, TOP_PAD: 64 * 2**20}",
        "settings = {MMAP_MAX: 0, TRIM_THRESHOLD: LARGEST, TOP_PAD: 64 * 2**21}",
    ): "addresses alone are asked for further ahead: memory is taken when it is first written to",
}  # fmt: skip


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
    is_script = file.endswith(".js")
    for start, end, new in script_edits(source) if is_script else _edits(ast.parse(source), source):
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
                case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPPED:
                    yield *place(node), f"(({text(left)}) {SWAPPED[type(op)]} ({text(right)}))"
                case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in SWAPPED:
                    yield *place(node), f"(({text(left)}) {SWAPPED[type(op)]} ({text(right)}))"
                case ast.BoolOp(op=op, values=[left, right]):
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


def script_edits(source: str) -> Iterator[tuple]:
    """The same of a script, but for what it imports."""
    code = NO_CODE.sub(lambda match: re.sub(r"[^\n]", "\0", match[0]), source)
    for row, (line, bare) in enumerate(zip(source.split("\n"), code.split("\n"), strict=True), 1):
        if bare.startswith(("import ", "} from")):
            continue
        for match in IN_SCRIPTS.finditer(bare):
            old = match[0]
            number = str(int(old) + 1) if old.isdigit() else f"2 * {old}"
            new = SWAPPED_IN_SCRIPTS.get(old, number)
            yield *((row, len(line[:at].encode())) for at in match.span()), new


def sample(of: str, each: int, seed: int) -> list[Fault]:
    """`each` faults of every file, or all where there are fewer."""
    chance, chosen = random.Random(seed), []
    folder, files = ("app", "*.js") if of == "scripts" else (of, "*.py")
    for path in sorted((ROOT / folder).rglob(files)):
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
        """Run the tests of a folder as they are; for scripts nothing is measured. Raises ValueError
        where one fails."""
        if folder == "scripts":
            return cls({}, {})
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
        if fault.file.endswith(".js"):
            return OF_SCRIPTS
        here = self.tests.get(fault.file, {}).get(fault.number, [])
        near = sorted(here, key=lambda test: self.seconds.get(test, 0))
        folder = f"tests/{Path(fault.file).parts[0]}"
        files = sorted({test.partition("::")[0] for test in near}) or [folder]
        return [near, files] if near else [files]

    def limit(self, tests: list[str]) -> float:
        """Seconds after which tests, or files and folders of them, hang."""
        if not self.seconds:
            return LONGEST
        return START + PATIENCE * sum(
            seconds for test, seconds in self.seconds.items() if test.startswith(tuple(tests))
        )


def run_tests(tests: list[str], tree: Path, limit: float) -> str:
    """What the first test that failed says; empty where all pass."""
    command = [*PYTEST, "-x", *tests]
    try:
        done = subprocess.run(
            command, cwd=tree, capture_output=True, text=True, timeout=limit, check=False
        )
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
        messages = (
            run_tests(tests, tree, baseline.limit(tests)) for tests in baseline.groups(fault)
        )
        return next(filter(None, messages), "")
    finally:
        path.write_text(original, encoding="utf-8")


def copies(folder: Path) -> Iterator[Path]:
    """A copy of the tree for each worker."""
    ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", "runs", "screenshots")
    for number in range(WORKERS):
        yield Path(shutil.copytree(ROOT, folder / str(number), symlinks=True, ignore=ignored))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--of", choices=["model", "app", "scripts"], default="model", help="where")
    parser.add_argument("--each", type=int, default=EACH, help="faults of a file")
    parser.add_argument("--most", type=int, help="of them all, a sample of this many")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--only",
        default="",
        metavar="PATH",
        help="files whose path has this in it, as a regular expression",
    )
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
            if message or fault.key in EXCUSED:
                print(f"noticed  {where}  {message or EXCUSED[fault.key]}"[:120], flush=True)
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
