"""`headlight assignment`: what students get, what the tests are worth, and what is refused."""

import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import nullcontext

import nbformat
import pytest

from headlight.app.command import main
from headlight.app.export import grading
from headlight.app.export.assignment import EXERCISES, students_zip
from tests.app.graded_files import GRADED
from tests.conftest import ROOT

NAMES = sorted(file.stem for file in EXERCISES.glob("*.md"))
UNWRITTEN = "[Nn]ot written"
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
    assert len(texts) == 6
    code = (students / f"{name}.py").read_text("utf-8")
    written = re.findall(
        r"# BEGIN SOLUTION\n(.*?)# END", (EXERCISES / f"{name}.md").read_text(), re.S
    )
    assert not any("SOLUTION" in text or each in text for text in texts for each in written)
    assert code.count("raise NotImplementedError") == len(written)
    assert "SOLUTION" not in (solutions / f"{name}.py").read_text("utf-8")
    for folder in (students, solutions):
        notebook = nbformat.read(folder / f"{name}.ipynb", 4)
        nbformat.validate(notebook)
        graded = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
        tests = (folder / "tests" / f"test_{name}.py").read_text("utf-8")
        assert len(graded) == tests.count("def test_")


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_is_right_and_the_starter_is_not(folders, name):
    """Without the trained model, whose tests are below."""
    for folder, is_solved in zip(folders(name), (False, True), strict=True):
        found: dict = {}
        file = folder / f"{name}.py"
        cells = nbformat.read(folder / f"{name}.ipynb", 4).cells
        exec(cells[0].source, found)
        exec(compile(file.read_text("utf-8"), str(file), "exec"), found)
        tests = [cell.source for cell in cells if cell.metadata.get("nbgrader", {}).get("grade")]
        quick = [test for test in tests if "load(" not in test and "in_model(" not in test]
        assert quick and len(quick) == len(tests) - 1
        for test in quick:
            with nullcontext() if is_solved else pytest.raises(AssertionError, match=UNWRITTEN):
                exec(test, found)


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_hands_out_what_students_get(folders, name):
    students, _ = folders(name)
    with zipfile.ZipFile(io.BytesIO(students_zip(name))) as archive:
        for file in archive.namelist():
            assert (
                archive.read(file)
                == (students.parent / file.replace(name, "week3", 1)).read_bytes()
            )


def run_pytest(folder) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": str(ROOT), "PATH": ""})  # fmt: skip
    lines = done.stdout.splitlines()
    points = next(re.match(r"(\d+) of (\d+) points", line) for line in lines if "points" in line)
    assert points and (done.returncode == 0) == (points[1] == points[2])
    return lines


def test_what_a_test_is_told_of_a_file(tmp_path, monkeypatch):
    """In this process; those below run as students and instructors do."""
    (tmp_path / "broken.py").write_text("x = 1\ndef f(:\n", encoding="utf-8")
    (tmp_path / "empty.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    said = {}
    for name in ("broken", "empty"):
        try:
            exec(f"from {name} import f")
        except Exception as error:
            said[name] = grading._lines(error, tmp_path)
    assert said["broken"] == ["broken.py:2: def f(:", "Invalid syntax."]
    assert said["empty"] == ["There is no f in empty.py."]


@pytest.mark.long
@pytest.mark.parametrize("name", GRADED)
def test_an_exit_or_a_changed_judge_earns_nothing(folders, name):
    text, points, sentence = GRADED[name]
    students, _ = folders("scores")
    (students / "scores.py").write_text(text, encoding="utf-8")
    lines = run_pytest(students)
    assert f"{points} of 8 points" in lines
    assert any(sentence in line for line in lines)
    assert not any("Traceback" in line or "INTERNALERROR" in line for line in lines)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_points(folders, name):
    students, solutions = folders(name)
    source = (EXERCISES / f"{name}.md").read_text("utf-8")
    most = sum(map(int, re.findall(r"^```python test (\d+)", source, re.M)))
    lines = run_pytest(students)
    assert f"0 of {most} points" in lines
    # Of each test: its heading, its line, at most one of theirs, and the sentence.
    tests = source.count("```python test")
    assert sum("not written yet" in line or "NotImplemented" in line for line in lines) >= tests
    assert lines.index(f"0 of {most} points") <= 2 + 4 * tests
    assert f"{most} of {most} points" in run_pytest(solutions)


@pytest.mark.long
def test_a_mistake_is_named(folders):
    _, solutions = folders("attention")
    file = solutions / "attention.py"
    file.write_text(file.read_text("utf-8").replace(*WITHOUT_SCALE), encoding="utf-8")
    lines = run_pytest(solutions)
    assert "0 of 6 points" in lines
    assert any("That is the dot product. Divide it by √d." in line for line in lines)
    assert any("logits differ" in line or "Ours writes" in line for line in lines)


@pytest.mark.long
def test_all_solutions_at_once_are_the_translator(tmp_path, monkeypatch):
    """The last steps of the last exercise, beside the files of the earlier ones."""
    for name in NAMES:
        main(["assignment", name, "--into", str(tmp_path / name)])
        monkeypatch.syspath_prepend(tmp_path / f"{name}-solutions")
    found: dict = {}
    for cell in nbformat.read(tmp_path / "decoding-solutions/decoding.ipynb", 4).cells:
        if cell.id == "decoding-imports" or "**parts" in cell.source:
            exec(cell.source, found)
    assert len(found["parts"]) == 9
    assert found["checkup"](found["load"]("en-fr").with_parts(**found["parts"]).model)


def graded_by(folder, *command) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.stdout


@pytest.mark.long
def test_otter_grades_the_notebooks(folders):
    pytest.importorskip("otter", reason="Otter-Grader is not installed")
    students, solutions = folders("scores")
    command = "otter", "check", "scores.ipynb", "-t", "otter_tests"
    assert "All tests passed" in graded_by(solutions, *command)
    said = graded_by(students, *command)
    assert said.count("Test case failed") == said.count("not written yet") == 3


@pytest.mark.long
def test_nbgrader_grades_the_notebooks(folders, tmp_path):
    """It makes its own release from the notebook with the solution."""
    api = pytest.importorskip("nbgrader.api", reason="nbgrader is not installed")
    _, solutions = folders("scores")
    course = tmp_path / "course"
    for student, file in (("right", "source"), ("starter", "release")):
        folder = course / "source/week3"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(solutions / "scores.ipynb", folder)
        graded_by(course, "nbgrader", "generate_assignment", "week3", "--create", "--force")
        (course / "submitted" / student).mkdir(parents=True)
        shutil.copytree(course / file / "week3", course / "submitted" / student / "week3")
    graded_by(course, "nbgrader", "autograde", "week3", "--create")
    with api.Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        found = {one.student.id: one.score for one in book.assignment_submissions("week3")}
    assert found == {"right": 8, "starter": 0}


def test_what_cannot_be_written_is_refused(folders, tmp_path):
    for name, text, sentence in (
        ("nothing", None, r"There is no exercise 'nothing'\. Choose from attention, decoding"),
        ("own.md", b"# Own\n", "no block that begins with ```python solution NAME"),
        ("own.md", b"\n```python check\n1\n```\n", "Line 2: a block begins with “solution NAME”"),
        ("own.md", b"```python test many\n1\n```\n", "not with “test many”"),
        ("own.md", b"\xff", "is not UTF-8"),
        ("my-own.md", b"", "my-own.md cannot be the name of a Python file"),
    ):
        if text is not None:
            (tmp_path / name).write_bytes(text)
        with pytest.raises(SystemExit, match=sentence):
            folders(name if text is None else str(tmp_path / name))
    assert not (tmp_path / "week3").exists()


def test_nothing_is_overwritten(folders):
    folders("attention")
    with pytest.raises(SystemExit, match="week3 is not an empty folder"):
        folders("attention")
