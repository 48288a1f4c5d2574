"""Implementations as students write them: each gets the name in its docstring's first line."""

import importlib
import inspect

import pytest

from headlight.model.checking import judge
from headlight.model.checking.parts import PARTS

FILES = ("wrong.attention", "wrong.heads", "wrong.layers_and_decoding", "wrong.masks_and_positions",
         "right.numpy_styles", "right.styles")  # fmt: skip


def implementations():
    for name in FILES:
        module = importlib.import_module(f"tests.model.checking.{name}")
        for key, value in vars(module).items():
            if (
                callable(value)
                and getattr(value, "__module__", "") == module.__name__
                and (value.__doc__ and not key.startswith("_"))
            ):
                of = (p for p in sorted(PARTS, key=len, reverse=True) if key.startswith(p))
                part = next(of, name.rpartition(".")[2])
                yield pytest.param(part, value, id=f"{name}.{key}")


@pytest.mark.parametrize(("part", "function"), implementations())
def test_each_gets_the_name_that_it_deserves(part, function):
    expected = inspect.getdoc(function).splitlines()[0]
    verdict = judge.verdict(part, function)
    names = ["right"] * verdict.ok + [verdict.name] + [name for name, _ in verdict.notes]
    assert expected in names
    assert all(len(line) < 400 for line in str(verdict).splitlines())
