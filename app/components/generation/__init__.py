"""A text as a model writes it, step by step: its beginning, the next-token probabilities, what each
head of a kind attends to for that step, and what earlier layers would have said. All steps are
sent at once; the browser walks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from app.components.scripts import read, script
from app.theme import FOCUS, WEIGHTS

_mount = st.components.v2.component(
    "headlight_generation",
    css=read("shared/button.css") + read("generation/style.css"),
    js=script("generation/index.js"),
)


@dataclass(frozen=True)
class Step:
    """One next token. `best`: id, label, probability, and the probability that it was drawn with,
    of the most probable ones and the chosen one, best first; `rest`: what all others have together.
    `lens`: for each depth its likeliest answer and the probability."""

    best: Sequence[tuple[int, str, float, float]]
    rest: float
    chosen: int
    lens: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Rows:
    """What the heads of a kind attend to at each step: the name of the kind, what its layers are
    called, labels of its keys, where each stands (from 0 in the text, from −1 down among what was
    written, None for neither), and weights (step, layers, heads, key); no step, where its queries
    are not what is written."""

    name: str
    numbers: Sequence[int]
    keys: Sequence[str]
    places: Sequence[int | None]
    weights: np.ndarray


def generation(
    title: str,
    text: Sequence[str],
    written: Sequence[str],
    steps: Sequence[Step],
    rows: Rows,
    focus: Mapping,
    branches: Sequence[Mapping],
    beams: Sequence[Sequence[Mapping]],
    on_choose: Callable[[int, int], None],
    on_focus: Callable[[int, int], None],
    on_branch: Callable[[str, bool], None],
) -> None:
    """`text` is what the model reads first, under its `title`; `written` has a label a step, eos
    included. `on_choose` hears of another token at a step, (step, id); `on_focus` of a head (layer,
    head) of the kind; `on_branch` of a branch that is walked to, or taken away."""

    def hear(name: str, tell: Callable) -> Callable[[], None]:
        def told():
            tell(*st.session_state["generation"][name])

        return told

    _mount(
        data={
            "colour": FOCUS,
            "palette": WEIGHTS,
            "title": title,
            "text": list(text),
            "written": list(written),
            "steps": [vars(step) for step in steps],
            "rows": vars(rows)
            | {"weights": np.rint(255 * np.nan_to_num(rows.weights)).astype(int).tolist()},
            "focus": dict(focus),
            "branches": list(branches),
            "beams": [list(step) for step in beams],
        },
        key="generation",
        on_choose_change=hear("choose", on_choose),
        on_focus_change=hear("focus", on_focus),
        on_branch_change=hear("branch", on_branch),
    )
