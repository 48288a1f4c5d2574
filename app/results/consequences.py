"""What changes, masks and padding do to what a model predicts, before and after, over the same
text."""

from dataclasses import dataclass

import numpy as np

from headlight.app.results import memoize, passes
from headlight.app.state.catalog import ModelView
from headlight.model.probing.run import Run

ModelRun = tuple[ModelView, Run]


@dataclass(frozen=True)
class Moved:
    """The next-token probability that moved most over a text: after `row`, which is token `at`, of
    `token`; for a class, that of the class before, and `token` is the class now."""

    row: str
    token: str
    before: float
    after: float
    at: int = 0

    @property
    def by(self) -> float:
        return abs(self.after - self.before)


@dataclass(frozen=True)
class Peek:
    """The largest weight from a row of the decoder, `at` from 0, to the very token that it
    predicts, and its head: `layer` and `head` as on screen, counted from 1."""

    kind: str
    layer: int
    head: int
    at: int
    row: str
    next_token: str
    weight: float


def moved_most(before: ModelRun, after: ModelRun) -> Moved | None:
    """What moved most between two runs over the same predicted text; None if no row of the model
    predicts the next token, or the texts differ. Raises CannotRead and CannotChange."""
    (view, run), (_, other) = before, after
    trace = passes.trace_of(view, run)
    side = trace.predicted
    if side.predicts != "next token" or run.texts[-1].ids != other.texts[-1].ids:
        return None
    was, now = (passes.answers_of(*each).wanted for each in (before, after))
    rows = min(len(was), len(now))
    by = np.abs(now[:rows] - was[:rows])
    if not np.isfinite(by).any():
        return None
    row = int(np.nanargmax(by))
    tokens = trace.texts[side.name].tokens
    if row + 1 < len(tokens):
        following = tokens[row + 1]
    else:  # a model without eos predicts nothing there: NaN
        (following,) = view.checkpoint.outputs([view.model.config.eos_id])
    return Moved(tokens[row], following, float(was[row]), float(now[row]), row)


def class_moved(before: ModelRun, after: ModelRun) -> Moved | None:
    """For a classifier, its class before and now, and the probability of the latter; else None."""
    view, _ = before
    if passes.trace_of(*before).predicted.predicts != "class":
        return None
    was, now = (passes.answers_of(*each) for each in (before, after))
    old, new = (view.checkpoint.outputs([int(answers.best[0])])[0] for answers in (was, now))
    best = int(now.best[0])
    return Moved(old, new, float(was.wanted[best]), float(now.wanted[best]))


def peek(view: ModelView, run: Run) -> Peek | None:
    """The row of a decoder that attends most to the token it is to predict, without a causal mask;
    None where no row can. Raises CannotRead and CannotChange."""
    traced = passes.trace_of(view, run)
    attention = passes.attention_of(view, run)  # a long text's one layer after the other

    def make() -> Peek | None:
        best = None
        for kind, sites in traced.kinds.items():
            query, key = traced.sides_of(kind)
            if "causal" not in sites[0].masks or query.name != key.name:
                continue
            text = traced.texts[query.name]
            real = sum(role != "pad" for role in text.roles)
            for site, layer in zip(sites, attention[kind], strict=True):  # (head, query, key)
                ahead = np.diagonal(layer, 1, axis1=-2, axis2=-1)[:, : real - 1]
                if ahead.size and ahead.max() > (best.weight if best else 0):
                    head, row = map(int, np.unravel_index(ahead.argmax(), ahead.shape))
                    tokens = text.tokens[row], text.tokens[row + 1]
                    where = kind, site.layer + 1, head + 1
                    best = Peek(*where, row, *tokens, float(ahead.max()))
        return best

    return memoize.memoize_pass(view, run, "peek", make, lambda result: memoize.SMALL_RESULT)
