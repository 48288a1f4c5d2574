"""Generation step by step: the text so far, the next-token probabilities, what each head attends
to, and what earlier layers would predict. All steps are sent at once; stepping happens in the
browser."""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from headlight.app.components.packing import weight_bytes
from headlight.app.components.registered import registered
from headlight.app.theme import FOCUS, Palette

_mount = registered("generation", "button")


@dataclass(frozen=True)
class GenerationStep:
    """One generated token. `best`: id, label, probability and sampling probability of the most
    probable tokens and the chosen one, best first. `rest`: the total probability of all others.
    `lens`: for each depth the most probable token and its probability."""

    best: Sequence[tuple[int, str, float, float]]
    rest: float
    chosen: int
    lens: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Rows:
    """What the heads of one kind of attention attend to at each step: the name of the kind, its
    layer numbers, labels of its keys, the place of each key (0, 1, … in the source; −1, −2, … in
    the output; None for neither), and weights (step, layers, heads, key). There are no steps if its
    queries are not the generated tokens."""

    name: str
    numbers: Sequence[int]
    keys: Sequence[str]
    places: Sequence[int | None]
    weights: np.ndarray


def generation(
    writer: str,
    given: int,
    title: str,
    text: Sequence[str],
    written: Sequence[str],
    steps: Sequence[GenerationStep],
    rows: Rows,
    focus: Mapping,
    palette: Palette,
    branches: Sequence[Mapping],
    beams: Sequence[Sequence[Mapping]],
    on_choose: Callable[[int, int], None],
    on_focus: Callable[[int, int], None],
    on_branch: Callable[[str, bool], None],
) -> None:
    """`writer`: the model, which continues the first `given` tokens; `text` is its input, under its
    `title`; `written` has one label per step, eos included. Callbacks: `on_choose` gets another
    token for a step, (step, id); `on_focus` a head, (layer, head); `on_branch` a branch to show or
    to remove."""

    def hear(name: str, tell: Callable) -> Callable[[], None]:
        def told():
            tell(*st.session_state["generation"][name])

        return told

    _mount(
        data={
            "colour": FOCUS,
            "palette": palette,
            "writer": writer,
            "given": given,
            "title": title,
            "text": list(text),
            "written": list(written),
            "steps": [vars(step) for step in steps],
            "rows": vars(rows) | _packed(rows.weights),
            "focus": dict(focus),
            "branches": list(branches),
            "beams": [list(step) for step in beams],
        },
        key="generation",
        on_choose_change=hear("choose", on_choose),
        on_focus_change=hear("focus", on_focus),
        on_branch_change=hear("branch", on_branch),
    )


def _packed(weights: np.ndarray) -> dict:
    """Weights as text, a byte each: a long text has millions, and as a list of numbers they would
    halt all other threads for a second."""
    text = base64.b64encode(weight_bytes(weights).tobytes()).decode("ascii")
    return {"weights": text, "shape": list(weights.shape)}
