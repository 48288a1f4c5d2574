"""What adds up to a logit, as bars: the parts of the model that write the next token."""

import streamlit as st

from app import charts, labels, session
from app.catalog import ModelView
from app.components.figure import figure
from model.analysis.decomposition import Decomposition, Term
from model.probing.sweeps import Score

MOST = 12  # parts that have a bar of their own
HEIGHT = 400  # pixels
FIGURE = "terms_figure"


def wanted(view: ModelView, score: Score) -> str:
    """What a logit is of, or a difference of two."""
    ids = [one for one in (score.wanted, score.against) if one is not None]
    return " less ".join(f"“{answer}”" for answer in view.checkpoint.outputs(ids))


def head_of(term: Term) -> dict:
    """The settings that choose the head of a part; none where it is not one."""
    if term.head is None:
        return {}
    return {"kind": term.kind, "layer": term.layer + 1, "head": term.head + 1}


def bars(sum_of: Decomposition, name: str, projector: bool) -> None:
    """The largest parts, for or against, of a logit of this name. A click selects a head."""
    largest = sum_of.largest()
    names = [labels.term_name(term) for term, _ in largest[:MOST]]
    values = [value for _, value in largest[:MOST]]
    if others := [value for _, value in largest[MOST:]]:
        names, values = [*names, "all others"], [*values, sum(others)]

    def select() -> None:
        for point in st.session_state[FIGURE].selection.points:
            if point["point_index"] < min(MOST, len(largest)):
                session.choose(**head_of(largest[point["point_index"]][0]))

    figure(
        charts.bars(names, values, "adds to the logit", HEIGHT),
        key=FIGURE,
        alt=f"What adds to the logit of {name}",
        projector=projector,
        compact=True,
        on_select=select,
    )
