"""python -m tests.covered_pictures: writes app/lessons/pictures.json, the covered pictures of the
shipped lessons and of the plan for a class, out of the models that they run on.

What is covered is not in the file.

map    `rows` and `columns` by their tokens, `cells` in percent, null where masked; `covered`: a
       row, which has none, or "future", all that is masked; without it nothing is covered
bars   `bars`, each a label and a share, null if it is covered; `covered`: the name of further bars,
       all of them covered; `named`: of those that are not; `upright`: without labels
lines  `source` and `target` words, `links` between them by place; `covered`: a
       target word
"""

import json
import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from headlight.app.lessons.covered import FILE
from headlight.app.lessons.lesson import load_folder
from headlight.app.lessons.sentence_run import SentenceRun
from headlight.model import Beam, load
from headlight.model.analysis.alignment import ordinary_words
from tests import claims

Picture = dict[str, Any]


def percents(weights: np.ndarray, mask: np.ndarray | None = None) -> list[list[int | None]]:
    """Rows of whole percents; null where nothing may be attended to."""
    allowed = np.ones_like(weights, dtype=bool) if mask is None else mask
    return [
        [round(100 * float(x)) if may else None for x, may in zip(*row, strict=True)]
        for row in zip(weights, allowed, strict=True)
    ]


def grid(rows, columns, cells, covered: int | None = None) -> Picture:
    """Without the row that is covered."""
    picture = {"kind": "map", "rows": rows, "columns": columns, "cells": cells}
    if covered is not None:
        cells[covered] = []
        picture["covered"] = covered
    return picture


def without_future(weights: np.ndarray) -> Picture:
    cells = percents(weights, np.tri(len(weights), dtype=bool))
    return grid([], [], cells) | {"covered": "future"}


def bars(*each: list, **more: Any) -> Picture:
    return {"kind": "bars", "bars": [*each]} | more


def shares(run: SentenceRun) -> Picture:
    head = run.head("best aligning")
    assert head is not None
    rows = run.queries(head)[:9]
    return grid(rows, run.keys(head), percents(run.weights(head)[:9]), rows.index("Gruppe"))


def induction(run: SentenceRun) -> Picture:
    """The letters of the second copy as rows."""
    head = run.head("induction")
    assert head is not None
    first = len(run.tgt) // 2
    weights = run.weights(head)[first:]
    cells = percents(weights, np.tri(len(run.tgt), dtype=bool)[first:])
    return grid(run.tgt[first:], run.tgt, cells, 1)


def scaled(run: SentenceRun) -> Picture:
    """The row whose weights are spread most."""
    head = run.head("best aligning")
    assert head is not None
    weights = run.weights(head)
    row = weights[(weights * np.log(weights)).sum(axis=1).argmin()]
    named = {"named": f"÷ √{run.checkpoint.model.config.d_head}", "covered": "not divided"}
    return {"kind": "bars", "upright": True} | bars(
        *(["", round(float(x), 2)] for x in row), **named
    )


def masks(run: SentenceRun) -> Picture:
    head = run.head("most telling", "decoder")
    assert head is not None
    return without_future(run.weights(head))


def alignment(run: SentenceRun) -> Picture:
    """The words around the one whose line crosses most others, without the first."""
    source, target = (
        [word for _, word in ordinary_words(text)] for text in (run.base.src, run.base.tgt)
    )
    n = target.index("court")
    covered = target.index("chien")
    links = [(s - 1, t - 1) for s, t in run.links if 0 < t <= n]
    last = 1 + max(s for s, _ in links)
    return {
        "kind": "lines", "source": source[1 : 1 + last], "target": target[1 : n + 1],
        "links": [link for link in links if link[1] != covered - 1], "covered": covered - 1,
    }  # fmt: skip


def decoding(run: SentenceRun) -> Picture:
    found = [run.generation(), run.generation(Beam(4))]
    texts = [run.checkpoint.decode(each.run.texts[1]).split() for each in found]
    first = next(i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b)
    labels = [f"… {' '.join(text[first:])}" for text in texts]
    return bars([labels[0], round(math.exp(found[0].score), 3)], [labels[1], None])


def explanation(run: SentenceRun, word: str = "") -> Picture:
    """Of a word of the translation, or of the first: the source words with the most attention."""
    needed = next(each for each in run.needed if word in ("", run.tgt[each.row + 1]))
    best = needed.attention.argsort()[::-1][:3]
    each = ([needed.words[i], round(float(needed.attention[i]), 2)] for i in best)
    return bars(*each, named="by attention", covered="by removal")


OF_LESSONS: dict[str, Callable[[SentenceRun], Picture]] = {
    "1-shares": shares,
    "2-query-key-value": induction,
    "3-score": scaled,
    "4-masks": masks,
    "5-cross-attention": alignment,
    "6-decoding": decoding,
    "7-explanation": explanation,
}


def map_of(sentence: str, head: str, covered: int | None = None) -> Picture:
    """The map of a head. A row of cross-attention has the name of the word that is written
    there."""
    weights, rows, columns = claims.head_values(sentence, head, "attention")
    if not head.startswith("encoder"):
        rows = [*rows[1:], "</s>"]
    return grid(rows, columns, percents(weights), covered)


def row_of_scores() -> Picture:
    """The largest of a row by softmax; the first is what the class computes."""
    row = sorted(claims.row(claims.S, "cross.3.3", "de").items(), key=lambda share: -share[1])[:4]
    return bars([row[0][0], None], *([key, round(x, 2)] for key, x in row[1:]))


def of_plan() -> list[Picture | None]:
    """A picture a step, in the order of class_plan.yaml; None: the class's own sentences."""
    probability = claims.probability
    return [
        map_of(claims.S, "cross.3.3", covered=8),
        row_of_scores(),
        without_future(claims.head_values(claims.S, "decoder.1.3", "attention")[0]),
        bars(["A cat chases a dog.", None], ["A dog chases a cat.", None]),
        bars(["all heads", round(probability(claims.S), 2)], ["without 3.3", None]),
        map_of(claims.S, "encoder.2.4"),
        bars(["greedy", round(probability(claims.P, claims.french(claims.P)), 3)],
             ["5 beams", None]),
        bars(*([f"step {step:,}", None] for step in (256, 1024, 4096))),  # of *red* for *rouge*
        explanation(SentenceRun(claims.en_fr(), "en-fr", "I saw an old house."), "une"),
        None,
    ]  # fmt: skip


def pictures() -> dict[str, Any]:
    """All pictures, as the file has them."""
    loaded = cache(load)
    lessons = {
        lesson.name: OF_LESSONS[lesson.name](lesson.open(loaded)) for lesson in load_folder()[0]
    }
    return json.loads(json.dumps({"lessons": lessons, "plan": of_plan()}))


def main() -> int:
    written = json.dumps(pictures(), ensure_ascii=False, separators=(",", ":"))
    FILE.write_text(written + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
