"""Parts in the styles in which students and courses write them: one table of what is right, and of
what is wrong and how. A row is a function or class of `right`, or one of these with an edit. It
deserves “right”, or its docstring: “cannot tell”. An edit says the name of its fault, or “fault: …”
if it has no name of ours; what it is told today may follow, if it is another."""

import ast
import importlib
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from headlight.model.checking.parts import PARTS
from tests.model.checking.right.one_line import ONE_LINE
from tests.model.checking.wrong.edited import EDITS

FILES = "styles", "attention", "heads", "rest", "decoding", "numpy_styles", "one_line"
IMPORTS = "import math\n\nimport torch\nimport torch.nn.functional as F\n"
UNNAMED = ("", "exception", "shape", "type", "cannot tell")  # says that it is wrong, not how
BY_LENGTH = sorted(PARTS, key=len, reverse=True)


@dataclass(frozen=True)
class Row:
    part: str
    style: str
    make: Callable  # a function, a module or, of multi_head, what makes one
    deserves: str
    told: str

    @property
    def is_right(self) -> bool:
        return self.deserves in ("right", "cannot tell")


def _row(style: str, make: Callable, deserves: str, told: str | None = None) -> Row:
    name = style.rpartition(".")[2]
    if told is None:
        told = "" if deserves.startswith("fault: ") else deserves
    return Row(next(p for p in BY_LENGTH if name.startswith(p)), style, make, deserves, told)


@cache
def _module(file: str) -> ModuleType:
    """Of `right`; what is one line there is made a module of functions."""
    if file != "one_line":
        return importlib.import_module(f"tests.model.checking.right.{file}")
    functions = (f"\n\ndef {head}:\n    return {gives}\n" for head, gives in ONE_LINE.items())
    module = sys.modules[file] = ModuleType(file)
    module.__file__ = f"<{file}>"
    _run(IMPORTS + "".join(functions), module.__file__, vars(module))
    return module


@cache
def _sources(file: str) -> dict[str, str]:
    text = inspect.getsource(_module(file))
    lines = text.splitlines(True)
    return {
        node.name: "".join(lines[node.lineno - 1 : node.end_lineno])
        for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }  # fmt: skip


def _run(source: str, place: str, around: dict) -> None:
    linecache.cache[place] = len(source), None, source.splitlines(True), place
    exec(compile(source, place, "exec"), around)


def _written() -> Iterator[Row]:
    for file in FILES:
        for name in _sources(file):
            if not name.startswith("_"):
                value = getattr(_module(file), name)
                yield _row(f"right.{file}.{name}", value, (value.__doc__ or "right").strip())


def _edited() -> Iterator[Row]:
    for i, (style, old, new, deserves, *told) in enumerate(EDITS):
        _, file, name = style.split(".")
        source = _sources(file)[name]
        assert old in source, (style, old)
        found = dict(vars(_module(file)))
        _run(source.replace(old, new), f"<edit {i}>", found)
        yield _row(style, found[name], deserves, *told)


ROWS = (*_written(), *_edited())
# Of each way of being given and of giving something: what only few of them have.
OFTEN = ("double_inside", "heads_first", "interleaved", "greedy_numpy")
SAMPLE = (*ROWS[:: len(ROWS) // 36], *(row for row in ROWS if row.style.endswith(OFTEN)
                                       and row.deserves == "right"))  # fmt: skip
