"""Imports run one way, as the contracts in pyproject.toml say, and whoever breaks one is told."""

import ast
import shutil
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FAULTS = {  # contract → a file, and an import that breaks it alone
    "model: from commands": ("model/masks.py", "import model.variants"),
    "app: from pages": ("app/theme.py", "import app.state.session"),
    "app.shell: from the bar": ("app/shell/layout.py", "import app.shell.top_bar"),
    "app.results: from lessons": ("app/results/memoize.py", "import app.results.passes"),
    "app.state: from widgets": ("app/state/pages.py", "import app.state.settings"),
    "app.server: from the command": ("app/server/lan.py", "import app.server.replicas"),
    "app.wording: from pages": ("app/wording/formats.py", "import app.wording.notices"),
    "app.export: from the bundle": ("app/export/view.py", "import app.export.tables"),
    "knows nothing of the app": ("model/card.py", "import plotly"),
    "needs PyTorch alone": ("model/transformer.py", "import numpy"),
    "needs no Streamlit": ("app/charts.py", "import streamlit"),
}


def files(folder):
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.py"))


def imports(file):
    """Dotted names that a file imports."""
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            yield node.module


def linted(folder):
    command = [Path(sys.executable).parent / "lint-imports", "--no-logo", "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("contract", "fault"), FAULTS.items(), ids=FAULTS)
def test_a_fault_in_each_contract_is_noticed(tmp_path, contract, fault):
    file, line = fault
    for name in ("app", "model"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / file).write_text(f"{line}\n")
    done = linted(tmp_path)
    broken = [text for text in done.stdout.splitlines() if "BROKEN" in text]
    assert done.returncode and any(contract in text for text in broken), done.stdout


def test_no_file_of_the_app_is_called_like_a_package():
    taken = {*packages_distributions(), *sys.stdlib_module_names, "app", "model"} - {"__init__"}
    names = {Path(file).stem for file in files("app")}
    names |= {path.name for path in (ROOT / "app").rglob("*") if path.is_dir()}
    assert not names & taken


def test_the_app_imports_its_own_by_their_full_names():
    """`import session` and `from app import session` would be two modules with two caches."""
    stems = {Path(file).stem for file in files("app")} | {"components", "views"}
    for file in files("app"):
        assert not {name.partition(".")[0] for name in imports(file)} & stems, file


def test_importing_the_model_imports_nothing_slow():
    slow = ["transformers", "bertviz", "streamlit", "plotly", "pandas"]
    code = f"import model, sys; print([name for name in {slow} if name in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
