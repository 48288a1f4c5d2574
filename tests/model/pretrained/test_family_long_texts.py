"""What is kept of a long text, in other people's models, under masks and changes."""

import dataclasses

import pytest

from headlight.model.masks import Masks
from headlight.model.probing.changes import parse
from tests.model.probing.test_long_trace import CHANGES, assert_as_whole, small_pictures

__all__ = ["small_pictures"]  # a fixture


@pytest.mark.parametrize("line", CHANGES)
def test_it_keeps_what_a_trace_has(family, line):
    run = dataclasses.replace(family.run, changes=parse(line))
    assert_as_whole(family.model, run)
    assert_as_whole(family.model, dataclasses.replace(run, masks=Masks(causal=False)))
