"""The scales of weights: more weight is more ink, and more light in the dark."""

import numpy as np
import pytest

from headlight.app.state.options import COLOURS
from headlight.app.theme import FOCUS, INKED, PAPER, WEIGHTS, ramp

# How colours look to those who lack a kind of cone: Machado, Oliveira and Fernandes 2009, severity
# 1, linear RGB.
SEEN_WITH = {
    "all cones": np.eye(3),
    "no long cones": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                      [-0.003882, -0.048116, 1.051998]],
    "no middle cones": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                        [-0.011820, 0.042940, 0.968881]],
    "no short cones": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                       [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


def linear(colours) -> np.ndarray:
    shares = np.asarray(colours) / 255
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def lightness(colours, seen=SEEN_WITH["all cones"]) -> np.ndarray:
    """L* of CIELAB, from 0 to 100."""
    share = np.clip(linear(colours) @ np.transpose(seen) @ LUMINANCE, 0, 1)
    return np.where(share <= 216 / 24389, share * 24389 / 27, 116 * np.cbrt(share) - 16)


@pytest.mark.parametrize("seen", SEEN_WITH)
@pytest.mark.parametrize("scheme", INKED)
def test_the_more_weight_the_further_from_the_page_for_every_kind_of_colour_vision(scheme, seen):
    """A step of 1% can be told from the next but for the rounding of a colour."""
    shown = lightness(ramp(INKED[scheme], 101), SEEN_WITH[seen])
    steps = np.diff(shown) if scheme == "dark" else -np.diff(shown)
    assert steps.min() > 0, steps
    page = lightness(ramp([PAPER[scheme]], 1))[0]
    assert abs(shown[0] - page) < 8 and abs(shown[-1] - page) > 70


@pytest.mark.parametrize("scheme", INKED)
def test_the_selection_stands_out_from_no_weight_and_from_all(scheme):
    orange = linear(ramp([FOCUS], 1)[0]) @ LUMINANCE
    for light in linear(ramp(INKED[scheme], 2)) @ LUMINANCE:
        low, high = sorted([orange, light])
        assert (high + 0.05) / (low + 0.05) >= 3


def test_one_chooses_among_the_scales_that_there_are():
    assert tuple(WEIGHTS) == COLOURS
