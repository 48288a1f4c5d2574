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


def shares(run: SentenceRun) -> Picture:
    head = run.head("best aligning")
    assert head is not None
    rows = run.queries(head)[:9]
    cells, covered = percents(run.weights(head)[:9]), rows.index("Gruppe")
    cells[covered] = []
    return {
        "kind": "map", "rows": rows, "columns": run.keys(head), "cells": cells, "covered": covered,
    }  # fmt: skip


def induction(run: SentenceRun) -> Picture:
    """The letters of the second copy as rows."""
    head = run.head("induction")
    assert head is not None
    first = len(run.tgt) // 2
    weights = run.weights(head)[first:]
    cells = percents(weights, np.tri(len(run.tgt), dtype=bool)[first:])
    cells[1] = []
    return {
        "kind": "map", "rows": run.tgt[first:], "columns": run.tgt, "cells": cells, "covered": 1,
    }  # fmt: skip


def scaled(run: SentenceRun) -> Picture:
    """The row whose weights are spread most."""
    head = run.head("best aligning")
    assert head is not None
    weights = run.weights(head)
    row = weights[(weights * np.log(weights)).sum(axis=1).argmin()]
    width = run.checkpoint.model.config.d_head
    return {
        "kind": "bars", "upright": True, "bars": [["", round(float(x), 2)] for x in row],
        "named": f"÷ √{width}", "covered": "not divided",
    }  # fmt: skip


def masks(run: SentenceRun) -> Picture:
    head = run.head("most telling", "decoder")
    assert head is not None
    mask = np.tri(len(run.tgt), dtype=bool)
    cells = percents(run.weights(head), mask)
    return {"kind": "map", "rows": [], "columns": [], "cells": cells, "covered": "future"}


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
    bars = [
        [f"… {' '.join(text[first:])}", round(math.exp(each.score), 3)]
        for text, each in zip(texts, found, strict=True)
    ]
    bars[1][1] = None
    return {"kind": "bars", "bars": bars}


def explanation(run: SentenceRun, word: str = "") -> Picture:
    """Of a word of the translation, or of the first: the source words with the most attention."""
    needed = next(each for each in run.needed if word in ("", run.tgt[each.row + 1]))
    best = needed.attention.argsort()[::-1][:3]
    bars = [[needed.words[i], round(float(needed.attention[i]), 2)] for i in best]
    return {"kind": "bars", "bars": bars, "named": "by attention", "covered": "by removal"}


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
    """The map of a head, without a row. A row of cross-attention has the name of the word that is
    written there."""
    weights, rows, columns = claims.head_values(sentence, head, "attention")
    if not head.startswith("encoder"):
        rows = [*rows[1:], "</s>"]
    picture = {"kind": "map", "rows": rows, "columns": columns, "cells": percents(weights)}
    if covered is not None:
        picture["cells"][covered] = []
        picture["covered"] = covered
    return picture


def row_of_scores() -> Picture:
    """The largest of a row by softmax; the first is what the class computes."""
    row = sorted(claims.row(claims.S, "cross.3.3", "de").items(), key=lambda share: -share[1])[:4]
    return {
        "kind": "bars",
        "bars": [[row[0][0], None], *([key, round(x, 2)] for key, x in row[1:])],
    }


def future() -> Picture:
    weights, rows, _ = claims.head_values(claims.S, "decoder.1.3", "attention")
    cells = percents(weights, np.tri(len(rows), dtype=bool))
    return {"kind": "map", "rows": [], "columns": [], "cells": cells, "covered": "future"}


def without_head() -> Picture:
    bars = [["all heads", round(claims.probability(claims.S), 2)], ["without 3.3", None]]
    return {"kind": "bars", "bars": bars}


def while_it_learns() -> Picture:
    """What *red* gets in the row of *rouge*, by training step."""
    return {"kind": "bars", "bars": [[f"step {step:,}", None] for step in (256, 1024, 4096)]}


def beams() -> Picture:
    found = round(claims.probability(claims.P, claims.french(claims.P)), 3)
    return {"kind": "bars", "bars": [["greedy", found], ["5 beams", None]]}


def of_plan() -> list[Picture | None]:
    """A picture a step, in the order of class_plan.yaml; None: the class's own sentences."""
    both = ("A cat chases a dog.", "A dog chases a cat.")
    return [
        map_of(claims.S, "cross.3.3", covered=8),
        row_of_scores(),
        future(),
        {"kind": "bars", "bars": [[sentence, None] for sentence in both]},
        without_head(),
        map_of(claims.S, "encoder.2.4"),
        beams(),
        while_it_learns(),
        explanation(SentenceRun(claims.en_fr(), "en-fr", "I saw an old house."), "une"),
        None,
    ]


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
