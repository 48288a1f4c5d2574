"""Every head of a long text as a picture should cost little more than reading the text."""

from functools import cache, partial

import torch

from headlight.model import presets
from headlight.model.masks import Masks
from headlight.model.probing.capture import view
from headlight.model.probing.long_trace import heads_at, long_trace
from headlight.model.probing.run import Run
from headlight.model.probing.trace import ids_of, read_of
from headlight.model.tokenizer import Encoding
from tests.bench.harness import Row
from tests.devices import here

LENGTH, VOCABULARY = 2048, 49152


@cache
def model_and_run():
    """Random weights in the sizes of SmolLM2-135M, and a text of random tokens."""
    torch.manual_seed(0)
    sizes = presets.own_sizes("llama", VOCABULARY) | dict(max_length=LENGTH)
    model = here(presets.build("llama", **sizes).eval().requires_grad_(False))
    ids = tuple(torch.randint(3, VOCABULARY, (LENGTH,)).tolist())
    special = sum((side.begins + side.ends) for side in model.sides())
    text = Encoding(ids, tuple(map(str, ids)), tuple((i, i + 1) for i in range(LENGTH)))
    return view(model), Run((text.take(range(LENGTH - special)),))


def plain(model, run):
    """A pass with all logits that nobody looks into."""
    ids = ids_of(model, read_of(model, run))
    with torch.no_grad():
        return model(*ids, *Masks().build(model, *ids))


def tiles():
    model, run = model_and_run()
    return partial(long_trace, model, run), partial(plain, model, run)


def one_head():
    model, run = model_and_run()
    traced = long_trace(model, run)
    return partial(heads_at, model, traced, traced.sites[17]), partial(plain, model, run)


SIZES = "2,048 tokens, 30 layers of 9 heads, d_model 576, 49,152 tokens in the vocabulary"
ROWS = [
    Row(
        name="all heads of a long text",
        condition=f"tiles of all 270 heads ÷ the same pass without hooks: {SIZES}",
        bar=1.3,
        sides=tiles,
        pairs=5,
        warm_up=1,
    ),
    Row(
        name="one head of a long text",
        condition=f"one layer in full, from what entered it ÷ a pass without hooks: {SIZES}",
        bar=0.3,
        sides=one_head,
        pairs=3,
        warm_up=1,
    ),
]
