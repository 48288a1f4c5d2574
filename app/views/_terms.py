"""The terms of a logit as bars: the parts of the model that write the next token."""

from collections.abc import Sequence
from functools import partial
from itertools import repeat

from headlight.app.components.colour_key import NEGATIVE, POSITIVE, Swatch, colour_key
from headlight.app.components.controls import Bar, bars
from headlight.app.state import session
from headlight.app.state.catalog import ModelView
from headlight.app.text import part_names
from headlight.model.analysis.decomposition import Decomposition, Term
from headlight.model.probing.sweeps import Score
from headlight.model.probing.trace import Pass

TERMS = (
    "Everything that writes to the residual stream adds to the logit: the token, its position, "
    "every head and every feed-forward sublayer. All biases form one part. Each norm's scale "
    "is frozen at its current value, so the parts add up exactly. To see what happens without "
    "a part, choose Without it. Click a head to select it."
)

MOST = 12  # terms with a bar of their own
HEIGHT = 480  # pixels


def wanted(view: ModelView, trace: Pass, score: Score) -> str:
    """The name of the token of a logit, or of the two of a difference."""
    ids = [token_id for token_id in (score.wanted, score.against) if token_id is not None]
    assert score.position is not None
    answers = view.checkpoint.outputs(ids, repeat(trace.preceding[score.position]))
    return " minus ".join(f"“{answer}”" for answer in answers)


def head_of(term: Term) -> dict:
    """The settings that select a term's head; none if it is not a head."""
    if term.head is None or term.layer is None:
        return {}
    return {"kind": term.kind, "layer": term.layer + 1, "head": term.head + 1}


def choose_head(heads: Sequence[dict], place: int) -> None:
    """Select the head whose bar was clicked. A callback."""
    session.choose(**heads[place])


def draw(sum_of: Decomposition, name: str) -> None:
    """The largest terms of a logit, positive or negative, as bars. A click selects a head."""
    largest = sum_of.largest()
    heads = [head_of(term) for term, _ in largest[:MOST]]
    selected = {key: session.values()[key] for key in ("kind", "layer", "head")}
    shown = [
        Bar(part_names.term_name(term), value, bool(head), head == selected)
        for (term, value), head in zip(largest[:MOST], heads, strict=True)
    ]
    if others := [value for _, value in largest[MOST:]]:
        shown.append(Bar("all others", sum(others)))
    colour_key(Swatch("raises the logit", POSITIVE), Swatch("lowers the logit", NEGATIVE))
    bars(shown, f"Contributions to the logit of {name}", "terms", partial(choose_head, heads))
