"""The terms of a logit as bars: the parts of the model that write the next token."""

import streamlit as st

from headlight.app import charts
from headlight.app.components.colour_key import NEGATIVE, POSITIVE, Swatch, colour_key
from headlight.app.components.figure import figure
from headlight.app.state import session
from headlight.app.state.catalog import ModelView
from headlight.app.wording import part_names
from headlight.model.analysis.decomposition import Decomposition, Term
from headlight.model.probing.sweeps import Score

MOST = 12  # terms with a bar of their own
HEIGHT = 480  # pixels
FIGURE = "terms_figure"


def wanted(view: ModelView, score: Score) -> str:
    """The name of the token of a logit, or of the two of a difference."""
    ids = [token_id for token_id in (score.wanted, score.against) if token_id is not None]
    return " minus ".join(f"“{answer}”" for answer in view.checkpoint.outputs(ids))


def head_of(term: Term) -> dict:
    """The settings that select a term's head; none if it is not a head."""
    if term.head is None:
        return {}
    return {"kind": term.kind, "layer": term.layer + 1, "head": term.head + 1}


def bars(sum_of: Decomposition, name: str, projector: bool) -> None:
    """The largest terms of a logit, positive or negative. A click selects a head."""
    largest = sum_of.largest()
    names = [part_names.term_name(term) for term, _ in largest[:MOST]]
    values = [value for _, value in largest[:MOST]]
    if others := [value for _, value in largest[MOST:]]:
        names, values = [*names, "all others"], [*values, sum(others)]

    def select() -> None:
        for point in st.session_state[FIGURE].selection.points:
            if point["point_index"] < min(MOST, len(largest)):
                session.choose(**head_of(largest[point["point_index"]][0]))

    colour_key(Swatch("raises the logit", POSITIVE), Swatch("lowers the logit", NEGATIVE))
    figure(
        charts.bars(names, values, "contribution to the logit", HEIGHT),
        key=FIGURE,
        alt=f"Contributions to the logit of {name}",
        projector=projector,
        compact=True,
        on_select=select,
    )
