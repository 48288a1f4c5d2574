"""Weights and other numbers as small PNGs in data: URLs."""

import base64
import io
from collections.abc import Sequence
from functools import cache

import numpy as np
from PIL import Image

from headlight.app import theme

SIDE = 64  # pixels of the longer side, about
MASKED, STRIPE = 0, 1  # indices in the palette; weights use the others


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


def signed_thumbnail(values: np.ndarray, most: float | None = None) -> str:
    """Numbers (row, column) as pixels: blue above zero, red below, clear at zero, on paper of any
    colour. `most`: the number of full colour, else the largest."""
    most = float(np.abs(values).max(initial=0)) if most is None else most
    share = np.nan_to_num(values / most if most > 0 else np.zeros_like(values))
    red, *_, blue = (bytes.fromhex(colour[1:]) for colour in theme.DIFFERENCES["light"][1:-1])
    colours = np.where((share > 0)[..., None], np.array([*blue]), np.array([*red]))
    alpha = np.clip(np.abs(share) ** 0.5, 0, 1)[..., None] * 255
    pixels = np.concatenate([colours, alpha], axis=-1).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=1)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
