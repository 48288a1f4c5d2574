"""What is kept of a long text, in other people's models, under masks and changes."""

import dataclasses
import subprocess
import sys

import pytest

from headlight.model.masks import Masks
from headlight.model.probing.changes import parse
from tests.conftest import ROOT
from tests.model.probing.test_long_trace import CHANGES, assert_as_whole, small_pictures

__all__ = ["small_pictures"]  # a fixture


@pytest.mark.parametrize("line", CHANGES)
def test_it_keeps_what_a_trace_has(family, line):
    run = dataclasses.replace(family.run, changes=parse(line))
    assert_as_whole(family.model, run)
    assert_as_whole(family.model, dataclasses.replace(run, masks=Masks(causal=False)))


MEASURED = """
import resource, torch
from headlight.model.probing.long_trace import long_trace
from tests.bench.bench_long import model_and_run

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

model, run = model_and_run()
before = peak()
traced = long_trace(model, run)
assert traced.tiles["decoder"].shape == (30, 9, 256, 256)
print(peak() - before)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="no resource module there")
def test_all_heads_of_a_small_language_model_fit_beside_its_weights():
    """At 2,048 tokens the weights of 30 layers of 9 heads alone are 4.5 GB."""
    measured = subprocess.run(
        [sys.executable, "-c", MEASURED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert int(measured.stdout) <= 1.5e9
