"""Each head's weights as a small PNG in a data: URL, for a table."""

import base64
import io
from collections.abc import Sequence
from functools import cache

import numpy as np
from PIL import Image

from headlight.app import theme
from headlight.app.components.packing import shrink, to_bytes

SIDE = 64  # pixels of the longer side, about; also the most cells along it
MASKED, STRIPE = 0, 1  # indices in the palette; weights use the others


def thumbnails(
    attention: dict[str, np.ndarray], stops: Sequence[str]
) -> dict[str, list[list[str]]]:
    """Kind → a picture of each head's weights, given as (layers, heads, query, key). Masked cells
    are transparent and hatched. `stops`: of the scale, as in theme.py."""
    return {
        kind: [[thumbnail(head, stops) for head in layer] for layer in _shrunk(weights)]
        for kind, weights in attention.items()
    }


def _shrunk(weights: np.ndarray) -> np.ndarray:
    *_, rows, columns = weights.shape
    every = max(1, -(-max(rows, columns) // SIDE))
    return to_bytes(shrink(weights, every, every))


def thumbnail(cells: np.ndarray, stops: Sequence[str]) -> str:
    """cells: (query, key), as `to_bytes` gives them."""
    each = max(1, SIDE // max(cells.shape))
    pixels = np.maximum(cells, STRIPE + 1).repeat(each, axis=0).repeat(each, axis=1)
    masked = (cells == 0).repeat(each, axis=0).repeat(each, axis=1)
    down, across = np.ogrid[: pixels.shape[0], : pixels.shape[1]]
    stripes = (down + across) % theme.MASKED["spacing"] == 0
    pixels = np.where(masked, np.where(stripes, STRIPE, MASKED), pixels).astype(np.uint8)
    image = Image.fromarray(pixels)
    image.putpalette(_palette(tuple(stops)))
    file = io.BytesIO()
    image.save(file, "PNG", transparency=MASKED, compress_level=1)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


@cache
def _palette(stops: Sequence[str]) -> bytes:
    """256 colours, three bytes each."""
    colours = theme.ramp(stops, 256 - (STRIPE + 1))
    return 2 * bytes.fromhex(theme.MASKED["grey"][1:]) + colours.tobytes()
