"""`headlight assignment`: what students get, what the tests are worth, and what is refused."""

import json
import subprocess
import sys

import nbformat
import pytest

from headlight.app.export.assignment import EXERCISES
from headlight.app.server.command import main
from tests.conftest import ROOT

NAMES = sorted(file.stem for file in EXERCISES.glob("*.md"))
WITHOUT_SCALE = (" / math.sqrt(q.shape[-1])", "")


@pytest.fixture
def folders(tmp_path):
    def write(name):
        main(["assignment", name, "--into", str(tmp_path / "week3")])
        return tmp_path / "week3", tmp_path / "week3-solutions"

    return write


@pytest.mark.parametrize("name", NAMES)
def test_students_get_no_solution(folders, name):
    students, solutions = folders(name)
    texts = [file.read_text("utf-8") for file in students.rglob("*") if file.is_file()]
    assert len(texts) == 5
    assert not any("SOLUTION" in text or "masked_fill" in text for text in texts)
    assert "raise NotImplementedError" in (students / f"{name}.py").read_text("utf-8")
    solution = (solutions / f"{name}.py").read_text("utf-8")
    assert "masked_fill" in solution and "SOLUTION" not in solution
    for folder in (students, solutions):
        notebook = nbformat.read(folder / f"{name}.ipynb", 4)
        nbformat.validate(notebook)
        assert "check.attention(attention, on=" in json.dumps(notebook)


def points(folder) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": str(ROOT), "PATH": ""})  # fmt: skip
    return next(
        (line for line in done.stdout.splitlines() if line.endswith(" points")), done.stdout
    )


@pytest.mark.long
def test_points(folders):
    students, solutions = folders("attention")
    assert points(students) == "0 of 6 points"
    assert points(solutions) == "6 of 6 points"
    file = solutions / "attention.py"
    file.write_text(file.read_text("utf-8").replace(*WITHOUT_SCALE), encoding="utf-8")
    assert points(solutions) == "0 of 6 points"


def test_what_cannot_be_written_is_refused(folders, tmp_path):
    with pytest.raises(SystemExit, match=r"There is no exercise 'nothing'\. Choose from attention"):
        folders("nothing")
    for name, text, sentence in (
        ("own.md", "# Own\n", "no block that begins with ```python solution NAME"),
        ("own.md", "\n```python check\n1\n```\n", "Line 2: a block begins with “solution NAME”"),
        ("own.md", "```python test many\n1\n```\n", "not with “test many”"),
        ("my-own.md", "", "my-own.md cannot be the name of a Python file"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(SystemExit, match=sentence):
            folders(str(tmp_path / name))
    (tmp_path / "own.md").write_bytes(b"\xff")
    with pytest.raises(SystemExit, match="is not UTF-8"):
        folders(str(tmp_path / "own.md"))
    assert not (tmp_path / "week3").exists()


def test_nothing_is_overwritten(folders):
    folders("attention")
    with pytest.raises(SystemExit, match="week3 is not an empty folder"):
        folders("attention")
