"""Writes an exercise to hand out: `headlight assignment NAME --into DIR`.

    headlight assignment attention --into week3

DIR gets what students need: README.md, a starter NAME.py, the same as a notebook NAME.ipynb, and
tests with points: tests/ for pytest, otter_tests/ for Otter-Grader. DIR-solutions gets the same
with the solution, and is not to be handed out; nbgrader makes its release from the notebook there.
Nothing that exists is overwritten.

NAME is one of ours, or a Markdown file of your own. Its code blocks begin with ```python and a
word: `solution NAME`, in which students see nothing between # BEGIN SOLUTION and # END SOLUTION;
`see`, for the notebook alone; or `test POINTS TITLE`.
"""

import io
import json
import re
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any

from headlight.model.arguments import parser_of
from headlight.model.files import read_within, replace_file
from headlight.model.messages import short

EXERCISES = Path(__file__).with_name("exercises")
LARGEST_EXERCISE = 1_000_000  # bytes
IMPORTS = "import torch\nfrom headlight import check, load\n"
BLOCK = re.compile(r"^```python ([^\n]+)\n(.*?)^```\n?", re.M | re.S)
SOLUTION = re.compile(r"^( *)# BEGIN SOLUTION\n.*?# END SOLUTION\n", re.M | re.S)
MARKS = re.compile(r"^ *# (BEGIN|END) SOLUTION\n", re.M)
TEST = re.compile(r"(\d{1,3}) (.+)")
CONFTEST = '''"""Adds up the points of the tests that pass, and says why the others failed."""

from headlight.app.export.grading import (  # noqa: F401
    pytest_configure,
    pytest_pyfunc_call,
    pytest_runtest_makereport,
    pytest_terminal_summary,
)
'''


class CannotAssign(ValueError):
    """Why an exercise cannot be written, in a sentence."""


@dataclass(frozen=True)
class Cell:
    """`kind`: "text", "solution", "see" or "test". `title`: of a solution the name of what is
    written, of a test what it shows."""

    kind: str
    text: str
    title: str = ""
    points: int = 0


def cells_of(source: str) -> list[Cell]:
    """Raises CannotAssign."""
    cells, at = [], 0
    for block in BLOCK.finditer(source):
        cells.append(Cell("text", source[at : block.start()].strip()))
        at = block.end()
        kind, _, title = block[1].strip().partition(" ")
        test = TEST.fullmatch(title)
        if kind == "test" and test:
            cells.append(Cell(kind, block[2].strip(), test[2], int(test[1])))
        elif kind == "see" or (kind == "solution" and title.isidentifier()):
            cells.append(Cell(kind, block[2].strip(), title))
        else:
            line = source.count("\n", 0, block.start()) + 1
            raise CannotAssign(
                f"Line {line}: a block begins with “solution NAME”, “see” or “test POINTS TITLE”, "
                f"not with “{block[1][:60]}”."
            )
    cells.append(Cell("text", source[at:].strip()))
    if not any(cell.kind == "solution" for cell in cells):
        raise CannotAssign("The exercise has no block that begins with ```python solution NAME.")
    return [cell for cell in cells if cell.text]


def starter(text: str) -> str:
    return SOLUTION.sub(r"\1raise NotImplementedError\n", f"{text}\n").rstrip()


def solved(text: str) -> str:
    return MARKS.sub("", f"{text}\n").rstrip()


def files_of(name: str, cells: Sequence[Cell], is_solved: bool) -> dict[str, str]:
    """Name → content of each file of a folder. The notebook with the solution keeps its marks:
    nbgrader makes its own starter of it."""
    shown = solved if is_solved else starter
    code = "\n\n\n".join(shown(cell.text) for cell in cells if cell.kind == "solution")
    texts = "\n\n".join(cell.text for cell in cells if cell.kind == "text")
    most = sum(cell.points for cell in cells)
    return {
        "README.md": f"{texts}\n\nWrite `{name}.py`. See it with `headlight check {name}.py`, test "
        f"it with `pytest`: {most} points.\n",
        f"{name}.py": f"{code}\n",
        f"{name}.ipynb": _notebook(name, cells, str if is_solved else starter),
        f"tests/test_{name}.py": _tests(name, cells),
        f"otter_tests/{name}.py": _otter_tests(name, cells),
        "conftest.py": CONFTEST,
    }


def _tests(name: str, cells: Sequence[Cell]) -> str:
    """Each imports what it tests, so that what is missing costs its own points alone."""
    lines = [f"import pytest\n{IMPORTS}"]
    written = [cell.title for cell in cells if cell.kind == "solution"]
    for i, cell in enumerate([cell for cell in cells if cell.kind == "test"], 1):
        used = [one for one in written if re.search(rf"(?<![\w.]){one}\b(?!\s*=[^=])", cell.text)]
        lines.append(f"\n@pytest.mark.points({cell.points})\ndef test_{name}_{i}():")
        lines += [f"    from {name} import {', '.join(used)}\n"] * bool(used)
        lines.append(_body(cell))
    return "\n".join(lines)


def _otter_tests(name: str, cells: Sequence[Cell]) -> str:
    """In the format of Otter-Grader without OK: a test gets what the notebook defines by name."""
    tests = [cell for cell in cells if cell.kind == "test"]
    lines = ["OK_FORMAT = False\n", "from otter.test_files import test_case", IMPORTS,
             f"name = {name!r}\npoints = {sum(cell.points for cell in tests)}\n"]  # fmt: skip
    for i, cell in enumerate(tests, 1):
        lines += [f"\n@test_case(name={cell.title!r}, points={cell.points})",
                  f"def test_{i}({_written(cells)}):", _body(cell)]  # fmt: skip
    return "\n".join(lines)


def _written(cells: Sequence[Cell]) -> str:
    return ", ".join(cell.title for cell in cells if cell.kind == "solution")


def _body(cell: Cell) -> str:
    return indent(f"# {cell.title}\n{cell.text}\n", "    ")


def _notebook(name: str, cells: Sequence[Cell], shown: Callable[[str], str]) -> str:
    made = [_cell("code", IMPORTS.strip(), f"{name}-imports")]
    for i, cell in enumerate(cells):
        kind = "markdown" if cell.kind == "text" else "code"
        text = shown(cell.text) if cell.kind == "solution" else cell.text
        if cell.kind == "test":
            text = f"# {cell.title} ({cell.points} points)\n{text}"
        made.append(_cell(kind, text, f"{name}-{i}", cell))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4}
    return json.dumps(notebook | {"nbformat_minor": 5}, ensure_ascii=False, indent=1) + "\n"


def _cell(kind: str, text: str, name: str, cell: Cell | None = None) -> dict:
    made: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": {}, "source": text}
    if cell and cell.kind in ("solution", "test"):
        is_test = cell.kind == "test"
        made["metadata"]["nbgrader"] = {
            "schema_version": 3, "grade_id": name, "cell_type": kind, "task": False,
            "grade": is_test, "locked": is_test, "solution": not is_test,
        } | ({"points": cell.points} if is_test else {})  # fmt: skip
    return made if kind == "markdown" else made | {"execution_count": None, "outputs": []}


def write(source: Path, into: Path) -> list[Path]:
    """The folders: for students, and the one with the solution. Raises CannotAssign and OSError."""
    name = source.stem
    if not name.isidentifier():
        raise CannotAssign(f"{short(source.name)} cannot be the name of a Python file.")
    try:
        cells = cells_of(read_within(source, LARGEST_EXERCISE).decode("utf-8"))
    except UnicodeDecodeError:
        raise CannotAssign(f"{short(source)} is not UTF-8.") from None
    folders = [into, into.with_name(f"{into.name}-solutions")]
    for folder in folders:
        if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
            raise CannotAssign(f"{short(folder)} is not an empty folder. Choose another.")
    for folder, is_solved in zip(folders, (False, True), strict=True):
        for file, text in files_of(name, cells, is_solved).items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            replace_file(folder / file, text)
    return folders


def exercise_names() -> list[str]:
    """Of ours."""
    return sorted(file.stem for file in EXERCISES.glob("*.md"))


def students_zip(name: str) -> bytes:
    """What students get of an exercise of ours, packed."""
    cells = cells_of((EXERCISES / f"{name}.md").read_text("utf-8"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, text in files_of(name, cells, is_solved=False).items():
            archive.writestr(f"{name}/{file}", text)
    return packed.getvalue()


def main(arguments: list[str] | None = None) -> None:
    names = exercise_names()
    parser = parser_of("assignment", __doc__)
    parser.add_argument("name", help=f"{', '.join(names)}, or a Markdown file")
    parser.add_argument("--into", type=Path, required=True, metavar="DIR")
    args = parser.parse_args(arguments)
    source = EXERCISES / f"{args.name}.md" if args.name in names else Path(args.name)
    if not source.is_file():
        sys.exit(f"There is no exercise {short(args.name)!r}. Choose from {', '.join(names)}.")
    try:
        students, solutions = write(source, args.into.absolute())
    except ValueError as error:
        sys.exit(str(error))
    print(f"For students: {students}\nNot for students: {solutions}")
