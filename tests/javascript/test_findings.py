"""What the grid says of a token under the pointer: every word and number is computed again from the
weights of a pass, for random sentences, heads, tokens and changes."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from headlight.app.components.packing import as_sent, pack_trace
from headlight.app.state import catalog
from headlight.model import load
from headlight.model.analysis.head_metrics import most_telling_row
from headlight.model.analysis.reading import Reading
from headlight.model.checkpoint import SHIPPED
from tests.app.test_row_words import word_of
from tests.javascript.grids import LOOK

NAMES = sorted(folder.name for folder in SHIPPED.iterdir())
FEW, MANY = 12, 500
SENTENCES = 6  # of each model
LEAST = 0.005  # smaller weights are not named
STEP = 0.005  # between the bytes that weights are sent as
NAMED = re.compile(r"(?:(?<= )|^)(.*?) \((\d+)%\)(?:, )?")


@cache
def trace_of(name, line, changes):
    return load(name).trace(line, changes=changes)


def change_of(random, trace) -> str:
    kind = str(random.choice(sorted(trace.attention)))
    layers, heads, _, keys = trace.attention[kind].shape
    layer, head, key = random.integers((layers, heads, keys)) + 1
    lines = "", f"{kind}.{layer}.{head}=off", f"{kind}=hide:{key}", f"{kind}.{layer}.{head}=uniform"
    return str(random.choice(lines))


def best_of(weights, labels) -> list[tuple[str, float]]:
    order = np.argsort(-weights, kind="stable")[:3]
    return [(labels[i], float(weights[i])) for i in order if weights[i] > LEAST]


def in_sentence(token: str) -> str:
    """Punctuation is quoted."""
    return token if re.search(r"[^\W_]", token) else f"“{token}”"


def check_named(said: str, weights: np.ndarray, labels) -> None:
    """The three largest weights, in their order, and what they are weights of."""
    labels = [in_sentence(label) for label in labels]
    found = [(label, int(share)) for label, share in NAMED.findall(said)]
    expected = best_of(weights, labels)
    sure = [weight for _, weight in expected if abs(weight - LEAST) > STEP]
    assert len(sure) <= len(found) <= 3, (said, expected)
    for (label, share), (_, weight) in zip(found, expected, strict=False):
        assert abs(share / 100 - weight) <= 0.005 + STEP, (said, expected)
        places = [i for i, one in enumerate(labels) if one == label]  # others may weigh the same
        assert any(abs(weights[i] - share / 100) <= 0.005 + 1e-4 for i in places), (said, expected)


@pytest.mark.parametrize("name", ["en-de", "copy", "english"])
def test_pages_about_one_row_open_with_the_one_that_is_marked(grid, name):
    trace = trace_of(name, catalog.examples(name)[0], "")
    packed, n_same, n_even = pack_trace(trace, Reading()), 0, 0
    for kind, weights in trace.attention.items():
        keys = trace.texts_of(kind)[1].tokens
        for layer, head in np.ndindex(weights.shape[:2]):
            grid.show(packed, replace(LOOK, focus={"kind": kind, "layer": layer, "head": head}))
            marked = grid("grid.queries(grid.telling().word)[0]?.index ?? null")
            rows = trace.row_words(kind, layer, head)
            row = most_telling_row(as_sent(weights[layer, head]), rows, keys)
            n_same += marked == row
            n_even += row is None
    n_heads = sum(np.prod(weights.shape[:2]) for weights in trace.attention.values())
    assert n_same == n_heads > n_even


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_what_is_said_of_a_token_is_so(grid, count):
    torch.set_num_threads(1)  # for short texts the fastest, beside other work above all
    random, names_one = np.random.default_rng(1), 0
    for _ in range(count):
        name = str(random.choice(NAMES))
        line = str(random.choice(catalog.examples(name)[:SENTENCES]))
        trace = trace_of(name, line, change_of(random, trace_of(name, line, "")))
        kind = str(random.choice(sorted(trace.attention)))
        weights = trace.attention[kind]
        layer, head = map(int, random.integers(weights.shape[:2]))
        weights = weights[layer, head]
        query, key = trace.sides_of(kind)
        side = (query, key)[int(random.integers(2))]
        at = int(random.integers(len(trace.texts[side.name].tokens)))
        focus = {"kind": kind, "layer": layer, "head": head}
        grid.show(pack_trace(trace, Reading()), replace(LOOK, focus=focus))
        said = grid.word(side.title, at)
        read, keys = trace.texts_of(kind)[0].tokens, trace.texts_of(kind)[1].tokens
        rows = [word_of(name, kind, layer, head, i, trace) for i in range(len(read))]
        number = trace.kinds[kind][layer].layer + 1
        assert f", layer {number} head {head + 1}: " in said
        said = said.split(f"head {head + 1}: ", 1)[1]
        start = in_sentence(token := trace.texts[side.name].tokens[at])
        row = at - (rows != list(read))  # the one whose label is the token
        if side == query and row == at - 1 >= 0:
            read_word = in_sentence(read[row])
            start = f"having read {read_word}, about to write {in_sentence(token)}, it"
        assert said.startswith(start + " "), (said, start)
        if side == query == key and rows == list(read):
            rows = keys = [*read[:at], "itself", *read[at + 1 :]]
        parts = re.split(r"attends most to |is attended to most by ", said[len(start) :])[1:]
        if side == query and row >= 0:
            check_named(parts.pop(0), weights[row], keys)
        if side == key:  # a query says nothing of itself as a key if no row attends to it
            check_named(parts.pop(0) if parts else "", weights[:, at], rows)
        assert not parts or "not written" in said
        names_one += "%" in said
    assert names_one >= 0.8 * count
    print(f"{names_one} of {count} name a token")
