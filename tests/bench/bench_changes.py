"""What-if: every head by itself should cost a few passes, and writing under changes little more
than writing."""

from functools import partial

import torch

from headlight.model import load
from headlight.model.decoding.search import greedy_decode
from headlight.model.probing.applying import applied
from headlight.model.probing.changes import parse
from headlight.model.probing.sweeps import heads_off, sweep
from headlight.model.probing.trace import ids_of, read_of
from tests.bench.harness import Row
from tests.devices import here

SENTENCE = "A young girl in a red dress is running across a wide green field with two dogs."
LINE = "cross.2.3=off; decoder.1=temperature:2.0; cross=hide:3"


def every_head(against: str):
    """All heads in one sweep, against a plain pass, or against a sweep of each by itself."""
    held = load("en-de")
    here(held.model)
    run = held.run(SENTENCE)
    ids = ids_of(held.model, read_of(held.model, run))
    masks = run.masks.build(held.model, *ids)
    changes = heads_off(held.model)

    @torch.no_grad()
    def plain():
        return held.model(*ids, *masks)

    @torch.no_grad()
    def one_by_one():
        for change in changes:
            with applied(held.model, change):
                held.model(*ids, *masks)

    theirs = {"a pass": plain, "each by itself": one_by_one}[against]
    return lambda: sweep(held.model, run, changes) and None, theirs


def writing():
    held = load("en-de")
    src = here(torch.tensor([held.tokenizer.encode(SENTENCE).ids]))
    here(held.model)

    def ours():
        with applied(held.model, parse(LINE)):
            greedy_decode(held.model, src, max_length=20)

    return ours, lambda: greedy_decode(held.model, src, max_length=20)


ROWS = [
    Row(
        name=f"every head off ÷ {against}",
        condition="the effect of each of 48 heads on one sentence of 18 tokens and its target ÷ "
        f"{against}, en-de",
        bar=bar,
        sides=partial(every_head, against),
        pairs=15,
    )
    for against, bar in (("a pass", 12), ("each by itself", 0.2))
] + [
    Row(
        name="decoding under changes",
        condition="the same 20 tokens at most with a head off, a temperature and a hidden token ÷ "
        "without, both with a cache, greedy, en-de",
        bar=3,
        sides=writing,
    )
]
