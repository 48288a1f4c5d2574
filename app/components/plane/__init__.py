"""Vectors in the plane, with their numbers."""

import math
from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from headlight.app.components.registered import registered
from headlight.app.theme import FOCUS

_mount = registered("plane", "button")


def look_up(
    scaled: bool,
    vectors: Mapping[str, Sequence[float]],
    values: Sequence[float],
    on_query: Callable[[list[float]], None] | None = None,
) -> None:
    """Van Dijck's soft dictionary with draggable vectors: the query, then a key for each of the
    `values`. The browser computes; a script run leaves the vectors where they are. `on_query`, if
    anybody listens, gets the query once it rests."""

    def query() -> None:
        if on_query:
            on_query(st.session_state["look_up"].query)

    width = len(next(iter(vectors.values())))
    _mount(
        data={
            "colour": FOCUS,
            "vectors": [{"name": name, "at": at} for name, at in vectors.items()],
            "values": list(values),
            "divisor": math.sqrt(width) if scaled else 1,
            "divided": f"÷ √{width}",
            "hears": on_query is not None,
        },
        key="look_up",
        on_query_change=query if on_query else lambda: None,
    )
