"""Files as students save them, made of the table's styles: written otherwise, changed by a letter,
cut off, or returning and raising anything."""

# ruff: noqa: E501  # programs of one line

import ast
import inspect
import random
import sys
from collections.abc import Iterator
from functools import cache

from tests.model.checking.table import ROWS

STYLES = [row for row in ROWS if row.is_right and "edited" not in row.style]
RETURNED = (
    "object()", "()", "(1, 2)", "{}", "[]", "[[1.0]]", "''", "b''", "1", "1j", "None", "True", "...",
    "float('nan')", "lambda: 1", "type", "iter([])", "(x for x in [1])", "torch", "torch.nn.Linear",
    "torch.ones(0)", "torch.tensor(1.0)", "torch.ones(1, 1, 1, 1, 1, 1)", "torch.ones(2, 3).to_sparse()",
    "torch.ones(3, device='meta')", "torch.ones(3).cfloat()", "torch.ones(3, dtype=torch.int8)",
    "torch.nested.nested_tensor([torch.ones(2)])", "torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.qint8)",
    "torch.full((2, 3), float('nan'))", "torch.ones(3, requires_grad=True)", "torch.nn.Parameter(torch.ones(2))",
    "np.array(['a'])", "np.array([object()])", "np.ma.ones(3)", "np.float16(1)", "np.ones(3, '>f8')[::-1]",
    "np.datetime64('2020')", "np.zeros(3, [('a', 'f4')])", "[object()]", "[None]", "[1.5]", "[10**400]",
    "torch.ones(2, 3).to(torch.float8_e4m3fn)", "torch.empty_strided((2, 2), (0, 0))", "Odd()", "[Odd()]",
)  # fmt: skip
RAISED = (
    "ValueError('a\\0b')", "ValueError('\\x1b[2J')", "ValueError('\\ud800')", "ValueError('x' * 10**6)",
    "ValueError('a\\n' * 99)", "MemoryError()", "SyntaxError()", "SyntaxError('x', ('f', 'no', 1, 'a'))",
    "RecursionError()", "NotImplementedError()", "StopIteration()", "KeyError(object())", "OSError(2, 'x')",
    "UnicodeDecodeError('utf-8', b'', 0, 1, '')", "ImportError()", "Strange()", "SystemExit(1)",
    "KeyboardInterrupt()", "GeneratorExit()", "ExceptionGroup('x', [ValueError()])", "RuntimeError('size of tensor a (1')",
    "RuntimeError('shapes cannot be multiplied (1x2 and 3x4)')", "TypeError('positional argument')",
)  # fmt: skip
TAKES = "*inputs", "a, b=None, c=None, d=None, e=None, f=None", "x", ""
HELPERS = """
import numpy as np
import torch
class Odd:
    def __getattr__(self, name):
        raise OSError(name)
class Strange(Exception):
    def __str__(self):
        return 1 / 0
"""


@cache
def _text_of(module) -> str:
    return inspect.getsource(module)


def source_of(row, seed: random.Random | None = None, change=None) -> str:
    """A file with one style under the name of its part, and what its module has besides."""
    module = sys.modules[row.make.__module__]
    tree = ast.parse(_text_of(module))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == row.make.__name__:
            if change:
                change(node, seed)
            node.name = row.part
    return ast.unparse(ast.fix_missing_locations(tree))


def written_otherwise(node: ast.AST, seed: random.Random) -> None:
    """The same, with other names for what it assigns, and with detours."""
    for each in [*ast.walk(node)]:
        if isinstance(each, ast.Return) and each.value and seed.random() < 0.5:
            last = ast.parse("lambda *y: y[-1]", mode="eval").body
            each.value = ast.Call(last, [ast.Constant(0), each.value], [])
        elif isinstance(each, ast.FunctionDef | ast.For | ast.If) and seed.random() < 0.5:
            each.body.insert(
                0, ast.parse(seed.choice(("pass", "assert True", "...", "1 + 1"))).body[0]
            )
    given = {arg.arg for each in ast.walk(node) if isinstance(each, ast.arguments)
             for arg in [*each.posonlyargs, *each.args, *each.kwonlyargs, each.vararg] if arg}  # fmt: skip
    new = {
        each.id: f"{each.id}_{seed.randrange(99)}" for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each.id not in given
    }  # fmt: skip
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            each.id = new.get(each.id, each.id)


def changed(node: ast.AST, seed: random.Random) -> None:
    """With one place of it changed, which may be a fault."""
    places = [x for x in ast.walk(node) if isinstance(
        x, ast.BinOp | ast.Constant | ast.Compare | ast.Call | ast.Name | ast.Subscript | ast.FunctionDef)]  # fmt: skip
    place = seed.choice(places)
    if isinstance(place, ast.BinOp):
        place.op = seed.choice((ast.Add, ast.Sub, ast.Mult, ast.Div, ast.MatMult, ast.Pow))()
    elif isinstance(place, ast.Constant) and isinstance(place.value, int | float):
        place.value = seed.choice(
            (place.value + 1, place.value - 1, 2 * place.value, 0, -place.value)
        )
    elif isinstance(place, ast.Compare):
        place.ops[0] = seed.choice((ast.Lt, ast.Gt, ast.Eq, ast.NotEq, ast.LtE, ast.GtE))()
    elif isinstance(place, ast.Call) and len(place.args) > 1:
        place.args = place.args[::-1]
    elif isinstance(place, ast.Name) and isinstance(place.ctx, ast.Load):
        place.id = seed.choice([x.id for x in ast.walk(node) if isinstance(x, ast.Name)])
    elif isinstance(place, ast.FunctionDef) and len(place.body) > 1:
        del place.body[seed.randrange(len(place.body))]


def files(count: int, seed: int = 0) -> Iterator[tuple[str, str, str]]:
    """(kind, part, text): “right”, “changed” or “broken”."""
    chance = random.Random(seed)
    for i in range(count):
        row = chance.choice(STYLES)
        kind = ("right", "changed", "changed", "odd", "cut")[i % 5]
        if kind == "right":
            yield row.told, row.part, source_of(row, chance, written_otherwise)
        elif kind == "changed":
            yield kind, row.part, source_of(row, chance, changed)
        elif kind == "odd":
            returns = chance.random() < 0.6
            what = f"{'return' if returns else 'raise'} {chance.choice(RETURNED if returns else RAISED)}"
            text = f"{HELPERS}\ndef {row.part}({chance.choice(TAKES)}):\n    {what}\n"
            yield "broken", row.part, text
        else:
            text = source_of(row)
            at, odd = chance.randrange(len(text)), chance.choice(("", "\0", "((", "\t", "é", "\r"))
            yield "cut", row.part, text[:at] + odd + text[at + chance.randrange(9) :]
