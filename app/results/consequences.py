"""What changes, masks and padding do to what a model predicts, before and after, over the same
text."""

from dataclasses import dataclass

import numpy as np

from headlight.app.results import passes
from headlight.app.state.catalog import ModelView
from headlight.model.probing.run import Run
from headlight.model.probing.trace import Trace

NOTHING = 0.001  # a probability that moves by no more is said not to move


@dataclass(frozen=True)
class Moved:
    """The next-token probability that moved most over a text: after `row`, of `token`; for a class,
    that of the class before, and `token` is the class now."""

    row: str
    token: str
    before: float
    after: float

    @property
    def by(self) -> float:
        return abs(self.after - self.before)


@dataclass(frozen=True)
class Peek:
    """The largest weight from a row of the decoder to the very token that it predicts."""

    row: str
    next_token: str
    weight: float


def moved_most(view: ModelView, before: Run, after: Run) -> Moved | None:
    """What moved most between two runs over the same predicted text; None if no row of the model
    predicts the next token, or the texts differ. Raises CannotRead and CannotChange."""
    traces = [passes.trace_of(view, run) for run in (before, after)]
    side = traces[0].predicted
    ids = [run.texts[-1].ids for run in (before, after)]
    if side.predicts != "next token" or ids[0] != ids[1]:
        return None
    was, now = (passes.answers_of(view, run).wanted for run in (before, after))
    rows = min(len(was), len(now))
    by = np.abs(now[:rows] - was[:rows])
    if not np.isfinite(by).any():
        return None
    row = int(np.nanargmax(by))
    tokens = traces[0].texts[side.name].tokens
    following = (*tokens[1:rows], view.checkpoint.outputs([view.model.config.eos_id])[0])
    return Moved(tokens[row], following[row], float(was[row]), float(now[row]))


def class_moved(view: ModelView, before: Run, after: Run) -> Moved | None:
    """For a classifier, its class before and now, and the probability of the latter; else None."""
    if passes.trace_of(view, before).predicted.predicts != "class":
        return None
    was, now = (passes.answers_of(view, run) for run in (before, after))
    old, new = (view.checkpoint.outputs([int(answers.best[0])])[0] for answers in (was, now))
    best = int(now.best[0])
    return Moved(old, new, float(was.wanted[best]), float(now.wanted[best]))


def peek(trace: Trace) -> Peek | None:
    """The row of a decoder that attends most to the token it is to predict, where a causal mask is
    off; None where no row can."""
    found = None
    for kind, sites in trace.kinds.items():
        query, key = trace.sides_of(kind)
        if "causal" not in sites[0].masks or query.name != key.name:
            continue
        real = sum(role != "pad" for role in trace.texts[query.name].roles)
        ahead = np.stack(
            [
                np.diagonal(weights, 1, axis1=-2, axis2=-1)[..., : real - 1]
                for weights in trace.attention[kind]
            ]
        )  # (layer, head, row)
        if not ahead.size or ahead.max() <= (found.weight if found else 0):
            continue
        row = int(np.unravel_index(ahead.argmax(), ahead.shape)[-1])
        tokens = trace.texts[query.name].tokens
        found = Peek(tokens[row], tokens[row + 1], float(ahead.max()))
    return found
