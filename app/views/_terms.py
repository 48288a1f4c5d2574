"""The sum of a logit: all that writes to the residual stream, as a waterfall."""

from collections.abc import Sequence
from functools import partial
from itertools import repeat

import numpy as np

from headlight.app.components.waterfall import Likely, Rise, waterfall
from headlight.app.shell import frame, sweeps
from headlight.app.state import session
from headlight.app.state.catalog import ModelView
from headlight.app.text import formats, part_names
from headlight.model.analysis.decomposition import HEAD, Decomposition, Term
from headlight.model.probing.long_trace import LongTrace
from headlight.model.probing.sweeps import Score
from headlight.model.probing.trace import Pass, Trace

TERMS = (
    "Everything that writes to the residual stream adds to the logit: the token, its position, "
    "every head and every feed-forward sublayer. All biases form one part. Each norm's scale "
    "is frozen at its current value, so the parts add up exactly. To see what happens without "
    "a part, choose *By effect* on Heads. Click a head to select it."
)

ANSWERS = 4  # most probable ones
ALONE = 1 / 3  # of all that raises the logit: a part that adds more decides


def names_of(view: ModelView, trace: Pass, row: int, ids: Sequence[int]) -> list[str]:
    """The names of tokens (or classes) that a row predicts."""
    return view.checkpoint.outputs(ids, repeat(trace.preceding[row]))


def asked(score: Score) -> tuple[int, list[int]]:
    """The row of a score and the tokens that it is about: one, or two of a difference."""
    assert score.position is not None and score.wanted is not None
    return score.position, [score.wanted, *([] if score.against is None else [score.against])]


def wanted(view: ModelView, trace: Pass, score: Score) -> str:
    """The name of the token of a logit, or of the two of a difference."""
    return " minus ".join(f"“{name}”" for name in names_of(view, trace, *asked(score)))


def head_of(term: Term) -> dict:
    """The settings that select a term's head; none if it is not a head."""
    if term.head is None or term.layer is None:
        return {}
    return {"kind": term.kind, "layer": term.layer + 1, "head": term.head + 1}


def choose_head(heads: Sequence[dict], place: int) -> None:
    """Select the head whose step was clicked. A callback."""
    session.choose(**heads[place])


def answers_of(view: ModelView, trace: Trace | LongTrace, score: Score) -> list[Likely]:
    """The likeliest answers of a score's row, and those that it is about, if their probability is
    known: that of a long text is known of the likeliest."""
    row, about = asked(score)
    ids, shares = (some[row] for some in trace.most_probable(ANSWERS))
    found = dict(zip(ids.tolist(), shares.tolist(), strict=True))
    if isinstance(trace, Trace):
        logits = trace.logits[row].astype(np.float64)
        found |= {
            token: 1 / float(np.exp(logits - logits[token]).sum())
            for token in about
            if token not in found
        }
    names = names_of(view, trace, row, list(found))
    return [
        Likely(name, probability, token in about)
        for name, (token, probability) in zip(names, found.items(), strict=True)
    ]


def words_of(view: ModelView, trace: Trace | LongTrace) -> list[str]:
    """What each row predicts, where rows predict tokens."""
    if trace.predicted.predicts != "next token":
        return []
    return view.checkpoint.outputs(trace.most_probable(1)[0][:, 0].tolist(), trace.preceding)


def draw(view: ModelView, trace: Trace | LongTrace, score: Score, sum_of: Decomposition) -> None:
    """The finding, the waterfall and what explains it. A click on a step selects its head, one on a
    word its row."""
    row, _ = asked(score)
    names = names_of(view, trace, *asked(score))
    heads = [head_of(term) for term in sum_of.terms]
    now = {key: session.values()[key] for key in ("kind", "layer", "head")}
    frame.finding(finding(names, sum_of))
    waterfall(
        [
            Rise(
                part_names.term_name(term),
                value,
                term.layer,
                term.kind or term.what,
                term.what == HEAD,
            )
            for term, value in zip(sum_of.terms, sum_of.values.tolist(), strict=True)
        ],
        ("difference" if len(names) > 1 else "logit", sum_of.logit),
        answers_of(view, trace, score),
        words_of(view, trace),
        row,
        heads.index(now) if now in heads else None,
        key="terms",
        on_row=sweeps.on_row(trace),
        on_head=partial(choose_head, heads),
    )
    frame.explain(f"{TERMS} Difference from the logit: **{sum_of.difference:.0e}** (rounding).")


def finding(names: Sequence[str], sum_of: Decomposition) -> str:
    """What adds up to the logit of a token, or to the difference of two, by their `names`."""
    token, *against = (f"**{formats.escaped(name.strip() or '(space)')}**" for name in names)
    logit, count = formats.signed(sum_of.logit), len(sum_of.terms)
    gets = f"{token} gets {logit}, in {count} steps"
    if against:
        gets = f"{token} minus {against[0]}: {logit}, in {count} steps"
    raised = float(sum_of.values[sum_of.values > 0].sum())
    largest = int(sum_of.values.argmax())
    value = float(sum_of.values[largest])
    if value <= 0:
        return f"{gets}, of which none goes up."
    name = part_names.term_name(sum_of.terms[largest])
    if value > ALONE * raised:
        return f"{gets}. The largest step up, {name}, adds {formats.signed(value)}."
    return (
        f"{gets}. The largest step up, {name}, adds only {formats.signed(value)}: no part decides "
        "alone."
    )
