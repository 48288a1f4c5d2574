"""The small pictures in the table of heads, against a rerun of an empty page."""

import torch

from headlight.app.components.thumbnails import thumbnails
from headlight.app.theme import INKED
from tests.bench.bench_grid import ANSWERED, floor, text_of, typed
from tests.bench.harness import Row

TOKENS = 20


def pictures():
    kinds = ("encoder", "decoder", "cross")
    attention = {kind: torch.randn(4, 4, TOKENS, TOKENS).softmax(-1).numpy() for kind in kinds}
    stops = INKED["light"]
    return lambda: thumbnails(attention, stops), lambda: typed(
        floor(), text_of(TOKENS - 1), ANSWERED
    )


ROWS = [
    Row("thumbnails", f"the pictures of 48 heads of {TOKENS} tokens ÷ rerun of an empty page", 0.2,
        pictures, pairs=20, cpu_only=True),
]  # fmt: skip
