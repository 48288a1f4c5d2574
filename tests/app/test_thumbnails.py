"""Weights as small pictures."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from headlight.app.components.packing import to_bytes
from headlight.app.components.thumbnails import SIDE, thumbnail
from headlight.app.export import figures
from headlight.app.theme import INKED

INK = INKED["light"]


def pixels(url) -> np.ndarray:
    """(y, x, rgba)"""
    head, content = url.split(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))).convert("RGBA"))


def softmax(*shape, seed=0):
    exp = np.exp(3 * np.random.default_rng(seed).normal(size=shape))
    return (exp / exp.sum(-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize(("rows", "columns"), [(7, 5), (1, 1), (20, 33), (64, 64)])
def test_each_cell_has_the_colour_of_its_weight(rows, columns):
    weights = softmax(rows, columns)
    drawn = pixels(thumbnail(to_bytes(weights), INK)).astype(int)
    each = SIDE // max(rows, columns)
    assert drawn.shape == (rows * each, columns * each, 4)
    wanted = figures.scale()[np.rint(weights * 255).astype(int)].astype(int)
    assert abs(drawn[::each, ::each] - wanted).max() <= 5
    assert (drawn.reshape(rows, each, columns, each, 4).std(axis=(1, 3)) == 0).all()


def test_what_is_masked_is_hatched_and_no_small_weight_is():
    weights = softmax(8, 8)
    weights[0, 0] = 1e-30
    masked = np.triu(np.ones((8, 8), bool), k=1)
    weights[masked] = 0
    drawn = pixels(thumbnail(to_bytes(weights), INK))
    cells = drawn.reshape(8, 8, 8, 8, 4).swapaxes(1, 2)  # (row, column, y, x, rgba)
    assert (cells[~masked][..., 3] == 255).all()
    clear = cells[masked][..., 3] == 0
    assert clear.any(axis=(1, 2)).all() and not clear.all(axis=(1, 2)).any()
    assert (cells[masked][~clear] == (128, 128, 128, 255)).all()
