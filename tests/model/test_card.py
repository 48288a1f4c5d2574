"""The card of a checkpoint, and the curve of its training."""

import re
from xml.etree import ElementTree

import numpy as np

from headlight.model.card import curve

SVG = "{http://www.w3.org/2000/svg}"
HISTORY = [
    {"epoch": epoch, "loss": loss, "val_loss": loss + 0.5}
    for epoch, loss in enumerate([4.0, 2.0, 1.5, 1.0], start=1)
]


def lines(picture) -> list[np.ndarray]:
    """The corners of every path of four points, (point, 2)."""
    found = (
        np.array(re.findall(r"[ML] ([\d.]+) ([\d.]+)", path.get("d")), dtype=float)
        for path in picture.iter(f"{SVG}path")
        if "z" not in path.get("d")
    )
    return [points for points in found if len(points) == len(HISTORY)]


def test_the_curve_is_the_history():
    picture = ElementTree.fromstring(curve(HISTORY))
    assert {"epoch", "loss per token", "training", "validation"} <= {
        text.text for text in picture.iter(f"{SVG}text")
    }
    training, validation = lines(picture)
    across, up = (np.array([row[name] for row in HISTORY]) for name in ("epoch", "loss"))
    scale = (training[1, 1] - training[0, 1]) / (up[1] - up[0])
    assert scale < 0  # in an SVG y grows downwards
    assert np.allclose(training[:, 1] - training[0, 1], scale * (up - up[0]), atol=1e-3)
    assert np.allclose(validation[:, 1] - training[:, 1], scale * 0.5, atol=1e-3)
    step = training[1, 0] - training[0, 0]
    assert step > 0 and np.allclose(training[:, 0] - training[0, 0], step * (across - 1), atol=1e-3)


def test_the_same_history_is_the_same_file():
    assert curve(HISTORY) == curve(HISTORY)


def test_one_epoch_is_a_curve_too():
    ElementTree.fromstring(curve(HISTORY[:1]))
