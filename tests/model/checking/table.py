"""Parts in the styles in which students and courses write them: one table of what is right, and of
what is wrong and how. A row is a function or class of the modules below, or one of these with an
edit. Its docstring's first line is what it deserves: “right”, “cannot tell”, or the name of its
fault; “fault: …” if it has no name of ours. What it is told today may follow, if it is another."""

import ast
import importlib
import inspect
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from headlight.model.checking.parts import PARTS
from tests.model.checking.wrong.edited import EDITS

FILES = (
    "right.styles", "right.attention", "right.heads", "right.rest", "right.decoding",
    "right.numpy_styles", "wrong.attention", "wrong.heads", "wrong.layers_and_decoding",
    "wrong.masks_and_positions",
)  # fmt: skip
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


def _row(file: str, name: str, make: Callable, deserves: str, told: str | None = None) -> Row:
    part = next((p for p in BY_LENGTH if name.startswith(p)), file.rpartition(".")[2])
    if told is None:
        told = "" if deserves.startswith("fault: ") else deserves
    return Row(part, f"{file}.{name}", make, deserves, told)


def _written() -> Iterator[Row]:
    for file in FILES:
        module = importlib.import_module(f"tests.model.checking.{file}")
        for name, value in vars(module).items():
            is_own = getattr(value, "__module__", "") == module.__name__
            if not name.startswith("_") and is_own and value.__doc__:
                lines = [line.strip() for line in value.__doc__.strip().splitlines()]
                yield _row(file, name, value, *lines[:2])


@cache
def _sources(module: ModuleType) -> dict[str, str]:
    text = inspect.getsource(module)
    lines = text.splitlines(True)
    return {
        node.name: "".join(lines[node.lineno - 1 : node.end_lineno])
        for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }  # fmt: skip


def _edited() -> Iterator[Row]:
    for i, (style, old, new, deserves, *told) in enumerate(EDITS):
        file, _, name = style.rpartition(".")
        module = importlib.import_module(f"tests.model.checking.{file}")
        source = _sources(module)[name]
        assert old in source, (style, old)
        text, place = source.replace(old, new), f"<edit {i}>"
        linecache.cache[place] = len(text), None, text.splitlines(True), place
        found = dict(vars(module))
        exec(compile(text, place, "exec"), found)
        yield _row(file, name, found[name], deserves, *told)


ROWS = (*_written(), *_edited())
SAMPLE = ROWS[:: len(ROWS) // 36]
