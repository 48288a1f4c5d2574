"""Imports run one way (see README, "How the code is laid out")."""

import ast
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = ("app", "model", "tests")

# file or folder → which modules of ours and which packages it may import; "*" is any package.
# The first line that fits counts.
RULES = {
    "app/main.py": {
        *("app.catalog", "app.look", "app.pages", "app.session", "app.sidebar"),
        "streamlit",
    },
    "app/pages.py": set(),
    "app/cache.py": set(),
    "app/settings.py": {"app.pages", "model.*"},
    "app/catalog.py": {"app.settings", "model.*", "streamlit", "torch", "safetensors"},
    "app/compute.py": {
        *("app.cache", "app.catalog", "app.words", "model.*", "streamlit", "numpy", "torch"),
    },
    "app/session.py": {
        *("app.catalog", "app.compute", "app.pages", "app.settings", "model.*", "streamlit"),
    },
    "app/sidebar.py": {
        *("app.catalog", "app.session", "app.settings", "app.components.copy_link", "streamlit"),
    },
    "app/views/": {
        *("app.session", "app.compute", "app.catalog", "app.settings", "app.pages", "app.views.*"),
        *("app.charts", "app.components.*", "app.bertviz_html", "app.exports", "app.evidence"),
        *("app.look", "app.words", "app.inside", "model.*"),
        *("streamlit", "numpy", "pandas", "torch"),
    },
    "app/look.py": {"plotly"},
    "app/charts.py": {"app.look", "numpy", "plotly"},
    "app/bertviz_html.py": {"app.look", "app.words", "model.*", "numpy"},
    "app/pictures.py": {"app.charts", "app.look", "numpy", "PIL"},
    "app/exports.py": {
        *("app.pages", "app.pictures", "app.settings", "app.words"),
        *("app.components.grid_page", "app.components.packing", "model.*", "numpy"),
    },
    "app/evidence.py": {
        *("app.exports", "app.pages", "app.settings", "app.words", "model.*", "numpy"),
    },
    "app/words.py": {"app.charts", "model.*", "numpy"},
    "app/inside.py": {
        *("app.settings", "app.words", "app.components.matrices", "model.*", "numpy", "torch"),
    },
    "app/components/figure.py": {"app.look", "streamlit", "plotly"},
    "app/components/packing.py": {"app.words", "model.*", "numpy"},
    "app/components/": {
        *("app.components.*", "app.charts", "app.look", "model.*"),
        *("streamlit", "plotly", "numpy"),
    },
    "app/notebook.py": {"app.components.*", "app.look", "model.*"},
    "app/__init__.py": set(),
    "model/transformer.py": {"torch"},
    "model/masks.py": {"torch"},
    "model/capture.py": {"torch", "model.transformer"},
    "model/": {"model.*", "*"},
}
NEVER_IN_MODEL = {"streamlit", "plotly", "pandas"}
EXCEPT = ("model/trace/__init__.py", "to_dataframe", "pandas")  # inside the method alone


def files(folder):
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.py"))


def imports(file):
    """Dotted names that a file imports, each with the function it stands in, if any."""

    def visit(node, function):
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, ast.FunctionDef) else function
            if isinstance(child, ast.Import):
                yield from ((alias.name, function) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{file}: a relative import"
                for alias in child.names:
                    name = f"{child.module}.{alias.name}"
                    yield (name if is_module(name) else child.module), function
            yield from visit(child, inner)

    yield from visit(ast.parse((ROOT / file).read_text(encoding="utf-8")), None)


def is_module(name):
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def allowed(name, rule):
    package = name.partition(".")[0]
    if package in OURS:
        return any(name == may or (may[-2:] == ".*" and name.startswith(may[:-1])) for may in rule)
    return package in sys.stdlib_module_names or "*" in rule or package in rule


@pytest.mark.parametrize("file", [*files("app"), *files("model")])
def test_imports_run_one_way(file):
    rule = next(may for where, may in RULES.items() if file.startswith(where))
    wrong = [name for name, _ in imports(file) if not allowed(name, rule)]
    assert not wrong, f"{file} may not import {wrong}"


@pytest.mark.parametrize("file", files("model"))
def test_the_model_knows_nothing_of_the_app_or_of_tables(file):
    found = [(file, function, name.partition(".")[0]) for name, function in imports(file)]
    wrong = [use for use in found if use[2] in {*NEVER_IN_MODEL, "app"} and use != EXCEPT]
    assert not wrong


def test_no_file_of_the_app_is_called_like_a_package():
    taken = {*packages_distributions(), *sys.stdlib_module_names, "app", "model"} - {"__init__"}
    names = {Path(file).stem for file in files("app")}
    names |= {path.name for path in (ROOT / "app").rglob("*") if path.is_dir()}
    assert not names & taken


def test_the_app_imports_its_own_by_their_full_names():
    """`import session` and `from app import session` would be two modules with two caches."""
    stems = {Path(file).stem for file in files("app")} | {"components", "views"}
    for file in files("app"):
        assert not {name.partition(".")[0] for name, _ in imports(file)} & stems, file


def test_importing_the_model_imports_nothing_slow():
    slow = ["transformers", "bertviz", "streamlit", "plotly", "pandas"]
    code = f"import model, sys; print([name for name in {slow} if name in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
