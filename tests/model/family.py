"""A soft dictionary, for what lessons say of one."""

import math

from torch import Tensor


def look_up(query: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scores q·k, weights softmax(scores / √width), and the blended value. query: (width,); keys:
    (key, width); values: (key,)."""
    scores = keys @ query
    weights = (scores / math.sqrt(query.shape[0])).softmax(dim=-1)
    return scores, weights, weights @ values
