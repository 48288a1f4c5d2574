"""A server runs threads. Each has its own view of one model, and none sees another."""

import random
from concurrent.futures import ThreadPoolExecutor
from threading import local

import numpy as np
import pytest
import torch

from headlight.model.decoding.search import greedy_decode
from headlight.model.masks import Masks
from headlight.model.probing.capture import view
from headlight.model.probing.changes import CannotChange, parse
from headlight.model.probing.interventions import replace_head
from headlight.model.probing.run import Run
from headlight.model.probing.sweeps import heads_off, sweep
from headlight.model.probing.trace import trace
from tests.model.common import attentions, encoding, hooks, in_short, random_ids, random_model

THREADS = 8


def decode(model, draw):
    return greedy_decode(model, random_ids(6, 6, generator=draw), max_length=12)


def trace_under_random_masks(model, draw):
    masks = Masks(*(torch.rand(4, generator=draw) < 0.5).tolist())
    src, tgt = (encoding(random_ids(8, generator=draw)) for _ in range(2))
    seen = trace(model, Run((src, tgt), masks, 12))
    return [*seen.attention.values(), *seen.query.values(), seen.embedded["tgt"], seen.logits]


def trace_with_a_head_replaced(model, draw):
    found = [attention for _, _, attention in attentions(model)]
    layer, head = (torch.randint(most, (), generator=draw) for most in (len(found), 4))
    factor = torch.randn((), generator=draw)
    with replace_head(found[layer], int(head), lambda output: factor * output):
        return trace_under_random_masks(model, draw)


def changed(model, draw):
    """Under changes; some of which leave the pass in the middle of it, by an error."""
    lines = ["all.1.1=off", "cross=hide:2; decoder.2=temperature:2.0", "encoder.1=mask:window-1",
             "all=positions:none", "encoder_feed_forward.1=skip",
             "decoder.1.1=weight:1>1:0.5"]  # fmt: skip
    line = parse(lines[torch.randint(len(lines), (), generator=draw)])
    src, tgt = (encoding(random_ids(8, generator=draw)) for _ in range(2))
    try:
        seen = trace(model, Run((src, tgt), changes=line))
    except CannotChange:
        seen = trace(model, Run((src, tgt)))
    swept = sweep(model, Run((src, tgt)), heads_off(model)[:3])
    return [*seen.attention.values(), seen.logits, swept.effects]


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("count", in_short([80, 400], 80))
@torch.no_grad()
def test_eight_threads_on_one_set_of_weights(count):
    shared, mine, views = random_model(), local(), []
    kinds = [decode, trace_under_random_masks, trace_with_a_head_replaced, changed]
    jobs = [(random.Random(i).choice(kinds), i) for i in range(count)]

    def answer(model, job):
        work, seed = job
        return work(model, torch.Generator().manual_seed(seed))

    def in_thread(job):
        if not hasattr(mine, "view"):
            mine.view = view(shared)
            views.append(mine.view)
        with torch.no_grad():
            return answer(mine.view, job)

    alone = view(shared)
    expected = [answer(alone, job) for job in jobs]
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(in_thread, jobs))
    wrong = [i for i in range(count) if not same(found[i], expected[i])]
    assert wrong == []
    assert len(views) == THREADS
    assert [hooks(model) for model in (shared, alone, *views)] == [0] * (2 + THREADS)
