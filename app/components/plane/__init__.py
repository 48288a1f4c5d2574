"""Vectors in the plane, with their numbers."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import streamlit as st

from headlight.app.components.registered import registered
from headlight.app.text.axis import Axis
from headlight.app.theme import FOCUS
from headlight.model.analysis.projection import Answer, Plane
from headlight.model.rounding import percent

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
            "picture": "look_up",
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


def head(
    plane: Plane,
    vectors: tuple[np.ndarray, np.ndarray],
    axes: tuple[Axis, Axis],
    chosen: int,
    answer: Answer,
    on_choose: Callable[[int], None],
) -> None:
    """Queries and keys of one head, `vectors` (query, d_head) and (key, d_head) with their `axes`,
    and the `answer` for the `chosen` query. `on_choose` is called with a newly selected query."""
    named = zip(("queries", "keys"), vectors, axes, strict=True)
    sides = {
        side: {"name": axis.title, "labels": list(axis.labels), "points": plane.put(rows).tolist()}
        for side, rows, axis in named
    }
    _mount(
        data=sides
        | {
            "picture": "head",
            "colour": FOCUS,
            "chosen": chosen,
            "axes": [
                f"component {i + 1}: {percent(share)}" for i, share in enumerate(plane.explained)
            ],
            "scores": answer.scores.tolist(),
            "inPlane": answer.in_plane.tolist(),
            "weights": answer.weights.tolist(),
            "divided": f"÷ √{vectors[0].shape[-1]}",
        },
        key="head_plane",
        on_chosen_change=lambda: on_choose(st.session_state["head_plane"].chosen),
    )
