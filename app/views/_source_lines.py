"""The lines of code that a function ran."""

import ast
import inspect
import itertools
import textwrap
from collections.abc import Callable


def code_lines(function: Callable, *marks: str) -> str:
    """The statements of a function that contain one of `marks`, with the comments above them, under
    its name; the whole body if none does."""
    source = inspect.cleandoc("\n" + inspect.getsource(function))
    lines = source.splitlines()
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    body = definition.body
    if ast.get_docstring(definition):
        body = body[1:]
    ends = [body[0].lineno - 1, *(statement.end_lineno for statement in body)]
    parts = ["\n".join(lines[start:end]) for start, end in itertools.pairwise(ends)]
    chosen = [part for part in parts if any(mark in part for mark in marks)] or parts
    return f"# {function.__qualname__}\n" + textwrap.dedent("\n".join(chosen)).strip("\n")
