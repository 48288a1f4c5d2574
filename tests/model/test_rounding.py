"""One rule for Python and JavaScript."""

import random

import numpy as np
import pytest

from headlight.model.rounding import fixed, percent


@pytest.mark.parametrize(
    ("number", "digits", "written"),
    [
        (12.5, 0, "13"), (13.5, 0, "14"), (0.5, 0, "1"), (-0.5, 0, "-1"), (0.125, 2, "0.13"),
        (0.15, 1, "0.1"), (0.49999999999999994, 0, "0"),
        (float("nan"), 2, "nan"), (1e22, 1, "10000000000000000000000.0"),
    ],
)  # fmt: skip
def test_halves_are_rounded_up(number, digits, written):
    assert fixed(number, digits) == written


def test_all_else_is_rounded_as_python_does():
    chance = random.Random(0)
    for _ in range(2000):
        number, digits = chance.uniform(-100, 100), chance.randrange(4)
        assert fixed(np.float32(number), digits) == f"{float(np.float32(number)):.{digits}f}"
    assert percent(np.float32(0.125)) == "13%" and percent(0.1225, 1) == "12.3%"
