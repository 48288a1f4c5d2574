"""Exercises whose answers are computed from what a page shows."""

from collections.abc import Callable, Sequence

import numpy as np

from headlight.app.text import exercises
from headlight.app.text.exercises import Exercise
from headlight.model.analysis.residual import Lens
from headlight.model.checkpoint import Checkpoint
from headlight.model.decoding.generate import Generation
from headlight.model.probing.head_steps import HeadSteps
from headlight.model.probing.trace import Pass


def of_step(
    name: str,
    steps: HeadSteps,
    keys: Sequence[str],
    row: int,
    without: Callable[[str], np.ndarray],
) -> Exercise | None:
    """What to try at a step of a head, whose steps these are. `keys`: tokens; `row` is followed;
    `without(part)`: the weights where a part of ABLATIONS is left out. None where a head is alone
    and there is nothing to compare."""
    width, concatenated = steps.q.shape[1], steps.concatenated.shape[1]
    match name:
        case "Input":
            is_first = steps.token is not None
            return exercises.same_word_twice(steps.table is not None, is_first)
        case "Projections":
            return exercises.size_of_query(width, concatenated // width, steps.residual.shape[1])
        case "Scores":
            scores = steps.scores[row]
            most, least = int(scores.argmax()), int(scores.argmin())
            return exercises.range_of_scores(
                keys[most], float(scores[most]), keys[least], float(scores[least])
            )
        case "Scaling":
            return exercises.order_of_scores(width)
        case "Mask":
            share = float(np.where(steps.mask, 0, without("mask")).sum(axis=1).mean())
            return exercises.without_mask(share, not steps.mask.all())
        case "Softmax":
            largest = (float(w.max(axis=1).mean()) for w in (steps.weights, without("scaling")))
            return exercises.why_scaling(*largest)
        case "Values":
            most = int(steps.weights[row].argmax())
            return exercises.all_on_one(keys[most], float(steps.weights[row, most]))
        case "Concatenation":
            return exercises.band_of_head(width) if concatenated > width else None
        case "Output":
            return exercises.size_of_output(concatenated, steps.output.shape[1])
        case "Add & norm":
            return exercises.WITHOUT_RESIDUAL
        case "Feed-forward":
            return exercises.EACH_BY_ITSELF


def of_generation(
    generation: Generation, trace: Pass, cross: np.ndarray | None, checkpoint: Checkpoint
) -> Exercise | None:
    """On the head whose largest weight moves most evenly through the source, by `cross`: the
    weights of cross-attention, (step, layer, head, key). Without any, or for a short text, on the
    least certain token."""
    along: dict[tuple[int, int], float] = {}
    largest = np.zeros((0, 0, 0), int) if cross is None else cross.argmax(axis=-1)
    if len(largest) > 2:
        for layer, head in np.ndindex(largest.shape[1:]):
            places = largest[:, layer, head]
            if np.ptp(places):
                steps = np.arange(len(places))
                along[layer, head] = float(np.corrcoef(places, steps)[0, 1])
    best = max(along, key=along.__getitem__, default=None)
    if best and along[best] > 0:
        number, head = best
        places = largest[:, number, head]
        keys = trace.texts_of("cross")[1].tokens
        name = f"head {trace.kinds['cross'][number].layer + 1}.{head + 1} of cross-attention"
        return exercises.along_the_source(name, keys[places[0]], keys[places[-1]])
    if not generation.path:
        return None
    chosen = [
        shares[id] for shares, id in zip(generation.probabilities, generation.path, strict=True)
    ]
    at = int(np.argmin(chosen))
    preceding = trace.preceding[generation.first + at]
    (token,) = checkpoint.outputs([generation.path[at]], [preceding])
    return exercises.least_certain(at + 1, token, float(chosen[at]))


def of_lens(lens: Lens, after: Sequence[str], depths: Sequence[str]) -> Exercise:
    """`after` and `depths` name its rows and depths."""
    depth = int(lens.settled.max())
    last = [after[row] for row in np.flatnonzero(lens.settled == depth).tolist()]
    return exercises.changes_last(last, depths[depth], depth > 0)
