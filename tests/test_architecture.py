"""Imports run one way, as the contracts in pyproject.toml say, and whoever breaks one is told."""

import ast
import builtins
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent


def files(folder):
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.py"))


def dotted(file):
    """The name under which a file is imported."""
    parts = ["headlight", *Path(file).with_suffix("").parts]
    return ".".join(parts).removesuffix(".__init__")


def imports(file):
    """Dotted names that a file imports."""
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            yield node.module


def test_the_graph_of_the_contracts_holds_every_module():
    graph = grimp.build_graph("headlight", cache_dir=None)
    names = (
        file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for folder in ("app", "model")
        for file in files(folder)
    )
    ours = {"headlight", "headlight.__main__"}
    assert {f"headlight.{name}" for name in names} == graph.modules - ours


def test_no_public_class_is_defined_twice():
    places = {}
    for file in [*files("app"), *files("model")]:
        for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(file)
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_no_constant_that_another_module_uses_is_defined_twice():
    """What each page and family declares under one name is not: others read it by way of that
    page or family."""
    modules = {dotted(file): file for file in [*files("app"), *files("model")]}
    trees = {name: ast.parse((ROOT / file).read_text("utf-8")) for name, file in modules.items()}
    places = {}
    for module, tree in trees.items():
        for node in tree.body:
            for target in getattr(node, "targets", [getattr(node, "target", None)]):
                if isinstance(target, ast.Name) and target.id.isupper():
                    places.setdefault(target.id, set()).add(module)
    used = {}
    for module, tree in trees.items():
        aliases = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for name in node.names:
                    if (full := f"{node.module}.{name.name}") in modules:
                        aliases[name.asname or name.name] = full
                    elif node.module in places.get(name.name, ()):
                        used.setdefault(name.name, set()).add(node.module)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                home = aliases.get(node.value.id)
                if home in places.get(node.attr, ()) and home != module:
                    used.setdefault(node.attr, set()).add(home)
    assert len(used) > 100
    assert not {name: found for name, found in used.items() if len(found) > 1}


def test_few_files_stand_in_no_room_of_the_app():
    assert len([*(ROOT / "app").glob("*.py")]) <= 8


def test_no_file_of_the_app_is_called_like_a_package():
    taken = {*packages_distributions(), *sys.stdlib_module_names, "app", "model"} - {"__init__"}
    names = {Path(file).stem for file in files("app")}
    names |= {path.name for path in (ROOT / "app").rglob("*") if path.is_dir()}
    assert not names & taken


def test_the_app_imports_its_own_by_their_full_names():
    """`import session` and `from headlight.app.state import session` would be two modules with two
    caches."""
    stems = {Path(file).stem for file in files("app")} | {"components", "views"}
    for file in files("app"):
        assert not {name.partition(".")[0] for name in imports(file)} & stems, file


def test_the_packages_are_loaded_under_one_name_alone():
    """As `app.state` beside `headlight.app.state`, a module would be two, with two caches."""
    assert not {"app", "model"} & sys.modules.keys()


def test_importing_the_package_imports_nothing_of_it():
    """The app answers before PyTorch is imported."""
    code = "import headlight, sys; print([name for name in sys.modules if 'headlight.' in name])"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_importing_the_model_imports_nothing_slow():
    slow = ["transformers", "bertviz", "streamlit", "plotly", "pandas"]
    code = "import headlight.model, sys; assert 'torch' not in sys.modules; "
    code += f"headlight.model.load; print([name for name in {slow} if name in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


WORDS = {"HTML", "JSON", "YAML", "BERT", "GELU", "README", "OWNER", "REVISION", "FOLDER", "MODULE"}
WORDS |= {"COMMAND", "deepcopy", "do", "former", "rollercoaster"}  # of others


def named_in(tree: ast.Module) -> set[str]:
    """All names of a module, and texts that could be one."""
    names = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname"):
            names |= {*str(getattr(node, field, "")).split(".")}
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= {*re.findall(r"^\w+$", node.value)}
    return names


def defined_in(tree: ast.Module) -> set[str]:
    """What other modules may know of a module: functions, methods, classes, constants."""
    targets = [t for node in tree.body for t in getattr(node, "targets", [])]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    return names | {getattr(node, "name", "") for node in ast.walk(tree)}


def test_what_docstrings_name_exists():
    """Codes in them and constants: in the module itself, or as what another one defines."""
    sources = [*files("app"), *files("model")]
    trees = {file: ast.parse((ROOT / file).read_text("utf-8")) for file in sources}
    known = {*dir(builtins), *WORDS}.union(*map(defined_in, trees.values()))
    known |= {part for file in sources for part in Path(file).with_suffix("").parts}
    owners = (ast.ClassDef, ast.FunctionDef)
    missing = []
    for file, tree in trees.items():
        here = known | named_in(tree)
        for node in (node for node in ast.walk(tree) if isinstance(node, owners)):
            text = ast.get_docstring(node) or ""
            named = re.findall(r"`([A-Za-z_]\w*)(?:\(.*\))?`", text)
            named += re.findall(r"\b[A-Z][A-Z_]{3,}\b", text)
            missing += [(file, node.name, name) for name in named if name not in here]
    assert not missing


CODE = {".py", ".js", ".css", ".html"}
SLACK = 150  # lines by which a room may be below its budget until that is lowered


def lines_by_room() -> dict[str, int]:
    """Room → its lines: a folder of app/, model/ or tests/, or the files that stand in none."""
    rooms: dict[str, int] = {}
    for file in (file for top in ("app", "model", "tests") for file in (ROOT / top).rglob("*")):
        top, *inner, _ = file.relative_to(ROOT).parts
        if file.suffix in CODE and file.is_file() and "__pycache__" not in inner:
            room = "/".join([top, *inner[:1]])
            rooms[room] = rooms.get(room, 0) + file.read_bytes().count(b"\n")
    return rooms


def test_no_room_is_over_its_budget_of_lines():
    text = (ROOT / "docs" / "decisions" / "lines.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\S+) \| ([\d,]+) \|$", text, re.MULTILINE)
    budget = {room: int(lines.replace(",", "")) for room, lines in rows}
    now = lines_by_room()
    assert budget.keys() == now.keys()
    over = {room: now[room] - most for room, most in budget.items() if now[room] > most}
    assert not over, f"see docs/decisions/lines.md: {over}"
    below = {room: now[room] for room, most in budget.items() if now[room] < most - SLACK}
    assert not below, f"lower the budget in docs/decisions/lines.md: {below}"
