"""What we use of Streamlit beyond what it documents is there, and stands in one file."""

import ast
from importlib import import_module
from importlib.metadata import version

from headlight.app.server.streamlit_internals import SEEN, USED
from tests.conftest import ROOT

# The last two are for type checkers alone.
DOCUMENTED = {
    "streamlit",
    "streamlit.components.v2",
    "streamlit.errors",
    "streamlit.delta_generator",
    "streamlit.elements.lib.mutable_popover_container",
}
INTERNAL = {"config", "runtime"}  # of streamlit itself


def has(owner: type, name: str) -> bool:
    """As an attribute, a field, or set by its constructor."""
    set_there = getattr(owner.__init__, "__code__", None)
    return (
        hasattr(owner, name)
        or name in getattr(owner, "__annotations__", {})
        or (set_there is not None and name in set_there.co_names)
    )


def test_this_version_has_what_we_use():
    lacking = []
    for path, names in USED.items():
        module, _, owner = path.rpartition(".")
        owner = getattr(import_module(module), owner)
        lacking += [f"{path}.{name}" for name in names if not has(owner, name)]
    assert not lacking, f"Streamlit {version('streamlit')} differs from {SEEN}: {lacking}"


def test_no_other_file_imports_internals():
    found = []
    for file in (ROOT / "app").rglob("*.py"):
        if file.name == "streamlit_internals.py":
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            names = {each.name for each in node.names}
            modules = names if isinstance(node, ast.Import) else {node.module or ""}
            for module in modules:
                is_ours = module.partition(".")[0] != "streamlit"
                if not is_ours and (module not in DOCUMENTED or INTERNAL & names):
                    found.append((file.relative_to(ROOT).as_posix(), module))
    assert not found
