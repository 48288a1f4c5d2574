"""One head step by step, for the typed sentence."""

import re
from collections.abc import Sequence

import numpy as np
import streamlit as st
import torch

from headlight.app import selection
from headlight.app.components.controls import walk
from headlight.app.components.matrices import matrices
from headlight.app.results import head_results
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.state.options import STEPS
from headlight.app.text import exercises, formats, part_names
from headlight.app.text.exercises import Exercise
from headlight.app.views._head_walkthrough import Walkthrough
from headlight.model.probing.head_steps import HeadSteps


@st.fragment
def walkthrough() -> str:
    """What the step does, in a sentence. A fragment is kept as long as the page, with everything it
    closes over."""
    shown, focus = selection.unchanged(), session.focus()
    trace = shown.trace
    where = trace.kinds[focus.kind][focus.layer], focus.head
    query = trace.row_words(*focus)
    read, key = (text.tokens for text in trace.texts_of(focus.kind))
    line = st.container(key="walk_row", horizontal=True, vertical_alignment="center")
    at = widgets.draw("at", line)
    number = STEPS.index(at) + 1
    steps = head_results.head_steps_of(shown, *where)
    row, column = (session.chosen_token(setting) for setting in ("follow", "to"))
    if not 0 <= row < len(query):
        row = head_results.opening_row(shown, focus)
    if not 0 <= column < len(key):
        column = int(steps.weights[row].argmax())
    step = Walkthrough(shown.view.model, steps, query, key, row, column, read).step(number)
    does, more = split_off(step.explanation)
    with line:
        said = {"page": session.memo().page, "finding": formats.paragraphs(does)}
        walk(number - 1, len(STEPS), said, on_step=lambda to: session.choose(at=STEPS[to]))
    pictures, words = st.columns([5, 3], gap="large")
    with words:
        moment = ""
        if query != read:
            moment = f"**{formats.escaped(part_names.moments(trace, focus.kind)[row])}**:\n\n"
        # One element: each costs a step several milliseconds.
        st.markdown(
            f"#### {number}. {step.name}\n\n$$\n{step.formula}\n$$\n\n{moment}"
            f"{more}\n\n{step.by_hand}\n\n`{step.shapes}`"
        )
        if exercise := exercise_of_step(at, steps, key, row):
            frame.draw_exercise(exercise)
        with st.expander("The code that computes it"):
            st.code(step.code, language="python")
    with pictures:
        fills = len(step.pictures) == 1
        matrices(step.pictures, "pictures", session.choose_tokens, fills, session.palette())
    if not session.is_running():
        session.write_address()
    return does


def split_off(explanation: str) -> tuple[str, str]:
    """The first sentence, with the answer where it is a question, and the rest."""
    sentences = re.split(r"(?<=[.?]) ", explanation)
    count = 1 + sentences[0].endswith("?")
    return " ".join(sentences[:count]), " ".join(sentences[count:])


def page() -> None:
    selection.tell_unchanged()
    _ = selection.unchanged().trace  # errors are reported out here
    frame.finding(walkthrough())


def exercise_of_step(name: str, steps: HeadSteps, keys: Sequence[str], row: int) -> Exercise | None:
    """What to try at a step of a head, whose steps these are. `keys`: tokens; `row` is followed.
    None where a head is alone and there is nothing to compare."""
    width, concatenated = steps.q.shape[1], steps.concatenated.shape[1]
    match name:
        case "Input":
            is_first = steps.token is not None
            return exercises.same_word_twice(steps.table is not None, is_first)
        case "Projections":
            return exercises.size_of_query(width, concatenated // width, steps.residual.shape[1])
        case "Scores":
            scores = steps.scores[row]
            most, least = int(scores.argmax()), int(scores.argmin())
            return exercises.range_of_scores(
                keys[most], float(scores[most]), keys[least], float(scores[least])
            )
        case "Scaling":
            return exercises.order_of_scores(width)
        case "Mask":
            unmasked = torch.tensor(steps.scaled).softmax(1).numpy()
            share = float(np.where(steps.mask, 0, unmasked).sum(axis=1).mean())
            return exercises.without_mask(share, not steps.mask.all())
        case "Softmax":
            masked = np.where(steps.mask, steps.scores, -np.inf)
            unscaled = torch.tensor(masked).softmax(1).numpy()
            largest = (float(w.max(axis=1).mean()) for w in (steps.weights, unscaled))
            return exercises.why_scaling(*largest)
        case "Values":
            most = int(steps.weights[row].argmax())
            return exercises.all_on_one(keys[most], float(steps.weights[row, most]))
        case "Concatenation":
            return exercises.band_of_head(width) if concatenated > width else None
        case "Output":
            return exercises.size_of_output(concatenated, steps.output.shape[1])
        case "Add & norm":
            return exercises.WITHOUT_RESIDUAL
        case "Feed-forward":
            return exercises.EACH_BY_ITSELF
