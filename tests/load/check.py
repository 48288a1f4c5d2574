"""Whether an answer is right: its text and its numbers against a pass of the test's own."""

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, lru_cache

import numpy as np
import torch

from headlight.app.text import part_names
from headlight.model.analysis.reading import Reading
from headlight.model.checkpoint import Checkpoint, load
from headlight.model.probing.changes import parse
from headlight.model.probing.run import Run
from headlight.model.probing.sweeps import Sweep
from headlight.model.probing.trace import Trace
from tests.app.test_packing import weights_of
from tests.load.student import Answer, Wanted

A_STEP = 0.005  # a weight is sent as a byte
NEAR = 1e-3  # effects over sums that may be in another order


@cache
def checkpoint(name: str) -> Checkpoint:
    return load(name)


@lru_cache(maxsize=64)
def unchanged(name: str, source: str) -> Run:
    return checkpoint(name).run(source)


@lru_cache(maxsize=64)
def traced(wanted: Wanted) -> tuple[Trace, Sweep | None]:
    model, plain = checkpoint(wanted.model), unchanged(wanted.model, wanted.source)
    run = replace(plain, masks=wanted.masks, changes=parse(wanted.changes))
    return model.trace_run(run), model.swept(run) if wanted.asks else None


def wrong(answer: Answer) -> str:
    """What is wrong with an answer, in a sentence; "" where nothing is."""
    wanted, model = answer.wanted, checkpoint(answer.wanted.model)
    trace, sweep = traced(wanted)
    header, weights = unpacked(answer.weights)
    for name, side in trace.sides.items():
        expected = list(part_names.side_labels(trace.texts[name], Reading())[0])
        if (shown := header["sides"][side.title]["labels"]) != expected:
            return f"the {side.title} is {shown}, not {expected}"
    if set(weights) != set(trace.attention):
        return f"kinds are {sorted(weights)}"
    for kind, expected in trace.attention.items():
        if weights[kind].shape != expected.shape:
            return f"{kind} has the shape {weights[kind].shape}"
        if (difference := np.abs(weights[kind] - expected).max(initial=0)) > A_STEP:
            return f"weights of {kind} differ by {difference:.3f}"
    texts = unchanged(wanted.model, wanted.source).texts
    target = model.tokenizer.decode(texts[-1].ids)
    if model.writes and answer.target not in (None, target):  # None: its menu is closed
        return f"the target is {answer.target!r}"
    look = json.loads(answer.look)
    off = sum(map(len, look.get("off", {}).values()))
    if off != len(wanted.off):
        return f"{off} heads are off, not {wanted.off}"
    if sweep is None:
        return ""
    length = int.from_bytes(answer.more[:4], "little")
    (told,) = json.loads(answer.more[4 : 4 + length])["answers"]
    for kind, effects in sweep.by_head(trace.kinds).items():
        shown = np.array(told["value"]["effects"][kind], float)
        if not np.allclose(shown, effects, atol=NEAR, equal_nan=True):
            return f"effects of {kind} heads differ"
    return ""


def unpacked(data: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """The header, and kind → weights (layers, heads, query, key), as the browser reads them."""
    length = int.from_bytes(data[:4], "little")
    header, cells = json.loads(data[4 : 4 + length]), data[4 + length :]
    weights = {}
    for part in header["parts"]:
        shape = [part[name] for name in ("layers", "heads", "rows", "columns")]
        flat = np.frombuffer(cells, np.uint8, int(np.prod(shape)))
        weights[part["kind"]] = weights_of(flat.reshape(shape))
        cells = cells[flat.size :]
    return header, weights


def mistakes(answers: Iterable[Answer]) -> list[str]:
    """What is wrong with any of them, each with what was asked for."""
    torch.set_num_threads(1)  # as the app takes for short texts
    return [f"{found}: {one.wanted}" for one in answers if (found := wrong(one))]
