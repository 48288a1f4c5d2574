"""The small pictures of the table of heads."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from headlight.app.components.thumbnails import SIDE, thumbnails
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
    weights = softmax(2, 3, rows, columns)
    urls = thumbnails({"cross": weights}, INK)["cross"]
    assert len(urls) == 2 and all(len(layer) == 3 for layer in urls)
    drawn = pixels(urls[1][2]).astype(int)
    each = SIDE // max(rows, columns)
    assert drawn.shape == (rows * each, columns * each, 4)
    wanted = figures.scale()[np.rint(weights[1, 2] * 255).astype(int)].astype(int)
    assert abs(drawn[::each, ::each] - wanted).max() <= 5
    assert (drawn.reshape(rows, each, columns, each, 4).std(axis=(1, 3)) == 0).all()


def test_what_is_masked_is_hatched_and_no_small_weight_is():
    weights = softmax(1, 1, 8, 8)
    weights[..., 0, 0] = 1e-30
    masked = np.triu(np.ones((8, 8), bool), k=1)
    weights[..., masked] = 0
    drawn = pixels(thumbnails({"decoder": weights}, INK)["decoder"][0][0])
    cells = drawn.reshape(8, 8, 8, 8, 4).swapaxes(1, 2)  # (row, column, y, x, rgba)
    assert (cells[~masked][..., 3] == 255).all()
    clear = cells[masked][..., 3] == 0
    assert clear.any(axis=(1, 2)).all() and not clear.all(axis=(1, 2)).any()
    assert (cells[masked][~clear] == (128, 128, 128, 255)).all()


def test_of_a_long_text_each_cell_has_its_largest_weight():
    weights = np.full((1, 1, 1000, 1000), 1e-4, np.float32)
    weights[..., 999, 3] = 1
    drawn = pixels(thumbnails({"encoder": weights}, INK)["encoder"][0][0])
    assert max(drawn.shape[:2]) <= SIDE
    light = drawn[..., :3].astype(int).sum(-1)
    assert np.unravel_index(light.argmin(), light.shape) == (drawn.shape[0] - 1, 0)
