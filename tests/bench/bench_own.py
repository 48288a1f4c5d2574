"""A figure of somebody's own model should cost little more than a pass of it."""

import time

import torch
from transformers import BertConfig, BertModel

from headlight.app.export.notebook import show
from tests.bench.harness import Row
from tests.devices import here

LENGTH = 128
FIXED = 0.1  # seconds that a figure may take, however fast the model is


def figure():
    """From the model to the page of all its heads, less what every figure may take, against a bare
    pass over the same ids."""
    torch.manual_seed(0)
    model = here(BertModel(BertConfig()).eval())
    ids = here(torch.randint(1000, 20_000, (1, LENGTH)))

    def ours() -> float:
        start = time.perf_counter()
        show(model, text=ids)
        return time.perf_counter() - start - FIXED

    @torch.inference_mode()
    def theirs():
        model(ids)

    return ours, theirs


ROWS = [
    Row(
        name="figure of a model in memory",
        condition=f"show(model, …) of {LENGTH} tokens, less {FIXED} s, ÷ the bare pass, BERT of "
        "base size (12 layers of 12 heads, random weights)",
        bar=1.3,
        sides=figure,
        pairs=15,
    )
]
