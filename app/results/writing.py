"""What a model writes: word by word, by a beam search, or drawn at random."""

import math
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

import numpy as np

from headlight.app.results.shown import Shown
from headlight.model.decoding.generate import Beam, Generation, Greedy, How, Sampling
from headlight.model.probing.trace import CannotRead

BEST = 8  # tokens of a step
OTHERS, TRIED = 4, 8  # other texts, and how many are written to find them
SEEDS = 8  # texts that are drawn
ENDS = 6  # texts that a beam search found, at most


def ids_of(beginning: str, vocabulary: int) -> tuple[int, ...]:
    """The tokens of a beginning like “12-45”. Raises CannotRead."""
    ids = tuple(map(int, re.findall(r"\d{1,7}", beginning)))
    if re.fullmatch(r"[\d -]*", beginning) and all(i < vocabulary for i in ids):
        return ids
    raise CannotRead(
        f"“{beginning[:80]}” is not a list of this model's token ids. Write them like “12-45”."
    )


def one_by_one(shown: Shown, beginning: str) -> dict[str, Any]:
    """Greedily, from a `beginning` of which `given` tokens are: of each step its `id`, its place
    among the `best`, each a label, a probability and an id, and what it `added` to the text; the
    text itself; and `others`, which one other token leads to, that of a step. Texts are words, each
    with whether the text beside it lacks it there."""
    plain = _written(shown)
    given = ids_of(beginning, len(shown.view.tokenizer))
    text = _written(shown, given) if given else plain
    steps = []
    for i, (token, shares) in enumerate(zip(text.path, text.probabilities, strict=True)):
        best = [*dict.fromkeys([*np.argsort(-shares, kind="stable")[:BEST].tolist(), token])]
        labels = _labels(shown, text.path[:i], best)
        steps.append(
            {
                "id": token,
                "chosen": best.index(token),
                "best": [
                    [label, float(shares[id]), id] for label, id in zip(labels, best, strict=True)
                ],
                "added": _added(shown, text.ids[: i + 1]) if i < len(text.ids) else "",
            }
        )
    others = [*islice(_others(shown, text, len(given)), OTHERS)]
    others.sort(key=lambda other: -other[0].score)
    return {
        "steps": steps,
        "given": len(given),
        "instead": _labels(shown, given[:-1], plain.path[len(given) - 1 :][:1])[0]
        if given and plain.path[: len(given) - 1] == given[:-1]
        else "",
        "text": [_line(text, plain)] + [_line(other, text) | more for other, more in others],
    }


def _others(shown: Shown, text: Generation, given: int):
    """Texts that a step's other token leads to, the likeliest first, with that step and token."""
    shares = text.probabilities.copy()
    shares[np.arange(len(text.path)), list(text.path)] = -1
    shares[: max(0, given - 1)] = -1
    known = {text.text}
    for at in np.argsort(-shares, axis=None, kind="stable")[:TRIED].tolist():
        step, token = divmod(at, shares.shape[1])
        other = _written(shown, (*text.path[:step], token))
        if other.text not in known:
            known.add(other.text)
            yield other, {"step": step, "id": token}


def beams(shown: Shown, width: int) -> dict[str, Any]:
    """A beam search: for each step the `steps` that were kept, each with its label, its probability
    and that of the whole text so far as `probability`, its `parent` among those of the step before,
    and whether it `ended`, is on the way to the text that is `found`, or to that of `greedy`
    decoding; and its `ends`, best first."""
    found, greedy = _written(shown, how=Beam(width)), _written(shown)
    places: dict[int, tuple[int | None, tuple[int, ...]]] = {0: (None, ())}
    steps, ends = [], []
    for i, step in enumerate(found.beams):
        following, nodes = {}, []
        for one in (one for one in step if one.ended or one.row is not None):
            parent, path = places[one.parent]
            path = (*path, one.token)
            node = {
                "label": _labels(shown, path[:-1], [one.token])[0],
                "probability": math.exp(one.log_probability),
                "parent": parent,
                "ended": one.ended,
                "found": path == found.path[: i + 1],
                "greedy": path == greedy.path[: i + 1],
            }
            if one.ended or i == len(found.beams) - 1:
                ids = path[:-1] if one.ended else path
                end = {"step": i, "node": len(nodes), "text": _decoded(shown, ids)}
                ends.append(end | {"score": one.score, "is_found": path == found.path})
                ends[-1] |= {"is_greedy": path == greedy.path, "probability": node["probability"]}
            if one.row is not None:
                following[one.row] = len(nodes), path
            nodes.append(node)
        steps.append(nodes)
        places = following
    ends.sort(key=lambda end: (not end["is_found"], -end["score"]))
    kept = [end for at, end in enumerate(ends) if at < ENDS or end["is_greedy"]]
    parting = [_parting(one.text, other.text) for one, other in ((found, greedy), (greedy, found))]
    return {
        "width": width,
        "steps": steps,
        "ends": kept,
        "found": {"text": parting[0], "probability": math.exp(found.score)},
        "greedy": {"text": parting[1], "probability": math.exp(greedy.score)},
        "is_same": found.text == greedy.text,
    }


def sampled(shown: Shown, temperature: float, seed: int) -> dict[str, Any]:
    """Texts drawn with several seeds, from `seed` on, each beside that of greedy decoding."""
    greedy, seeds = _written(shown), range(seed, seed + SEEDS)
    texts = [_written(shown, how=Sampling(temperature, seed=each)) for each in seeds]
    return {
        "temperature": temperature,
        "text": [
            _line(text, greedy) | {"seed": each} for text, each in zip(texts, seeds, strict=True)
        ],
        "same": sum(text.text == greedy.text for text in texts),
    }


def _written(shown: Shown, beginning: Sequence[int] = (), how: How = Greedy()) -> Generation:
    text = shown.generation(how, beginning)
    if np.isnan(text.probabilities).any():
        raise CannotRead("The model's probabilities are not finite, so it cannot choose a word.")
    return text


def _labels(shown: Shown, path: Sequence[int], ids: Sequence[int]) -> list[str]:
    """Labels of tokens that may follow a `path`."""
    alone = len(shown.view.model.sides()) == 1
    before = [*(shown.run.texts[0].ids if alone else ()), *path][-1:] or [None]
    return shown.view.checkpoint.outputs(ids, before * len(ids))


def _decoded(shown: Shown, ids: Sequence[int]) -> str:
    return shown.view.tokenizer.target.decode(ids)


def _added(shown: Shown, ids: Sequence[int]) -> str:
    """What the last of these tokens adds to the text."""
    before, after = _decoded(shown, ids[:-1]), _decoded(shown, ids)
    return after.removeprefix(before)


def _line(text: Generation, other: Generation) -> dict[str, Any]:
    """The words of a text, each with whether it is `new` beside another one."""
    words, beside = ((each.text or "(nothing)").split(" ") for each in (text, other))
    codes = SequenceMatcher(None, beside, words, False).get_opcodes()
    new = [tag != "equal" for tag, _, _, start, end in codes for _ in range(start, end)]
    return {"words": [*zip(words, new, strict=True)], "probability": math.exp(text.score)}


def _parting(text: str, other: str) -> str:
    """What a text has and another has not, with the word before it."""
    words, beside = text.split(" "), other.split(" ")
    first = next((i for i, (a, b) in enumerate(zip(words, beside, strict=False)) if a != b), 0)
    last = 0
    while last < min(len(words), len(beside)) - first and words[-1 - last] == beside[-1 - last]:
        last += 1
    return " ".join(words[max(0, first - 1) : len(words) - last]).removesuffix(".")
