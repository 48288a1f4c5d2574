"""One head step by step, for the typed sentence."""

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from headlight.app import selection
from headlight.app.components.controls import walk
from headlight.app.components.matrices import matrices
from headlight.app.components.matrix import Matrix, on_one_scale
from headlight.app.results import head_results
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.state.options import CLEAREST_ROW, LARGEST_WEIGHT, STEPS
from headlight.app.text import exercises, formats, part_names
from headlight.app.text.exercises import Exercise
from headlight.app.views._head_walkthrough import Walkthrough, WalkthroughStep
from headlight.model.analysis.head_metrics import total_variation
from headlight.model.probing.changes import Scope
from headlight.model.probing.head_steps import HeadSteps
from headlight.model.rounding import percent

LOOK = {"width": 165}


@st.fragment
def walkthrough() -> None:
    """A fragment is kept as long as the page, with everything it closes over."""
    shown, focus = selection.unchanged(), session.focus()
    trace = shown.trace
    where = trace.kinds[focus.kind][focus.layer], focus.head
    query = trace.row_words(*focus)
    read, key = (text.tokens for text in trace.texts_of(focus.kind))
    with st.container(key="walk_row", gap="xsmall"):
        choices = st.container(horizontal=True, vertical_alignment="bottom")
        at = widgets.draw("at")
    number = STEPS.index(at) + 1
    with choices:
        walk(number - 1, len(STEPS), on_step=lambda to: session.choose(at=STEPS[to]))
        row = widgets.draw_token("follow", read, CLEAREST_ROW, LOOK, names=query)
        column = widgets.draw_token("to", key, LARGEST_WEIGHT, LOOK)
        ablated = widgets.draw("without")
    steps = head_results.head_steps_of(shown, *where, ablated)
    if row is None:
        row = head_results.opening_row(shown, focus)
    column = int(steps.weights[row].argmax()) if column is None else column

    def step_of(steps: HeadSteps, ablated: Sequence[str] = ()) -> WalkthroughStep:
        return Walkthrough(shown.view.model, steps, query, key, row, column, ablated, read).step(
            number
        )

    step = step_of(steps, ablated)
    pictures, words = st.columns([3, 2], gap="medium")
    with words:
        moment = ""
        if query != read:
            moment = f"**{formats.escaped(part_names.moments(trace, focus.kind)[row])}**:\n\n"
        # One element: each costs a step several milliseconds.
        st.markdown(
            f"#### {number}. {step.name}\n\n$$\n{step.formula}\n$$\n\n{moment}"
            f"{step.explanation}  \n`{step.shapes}`  \n{step.by_hand}"
        )
        as_it_is = head_results.head_steps_of(shown, *where)
        exercise = exercise_of_step(
            at,
            as_it_is,
            key,
            row,
            lambda part: head_results.head_steps_of(shown, *where, [part]).weights,
        )
        if exercise:
            frame.draw_exercise(exercise)
    with pictures:
        if ablated:
            drawn = on_one_scale(step_of(as_it_is).pictures, step.pictures)
            draw_without(ablated, as_it_is, steps, row, drawn)
        else:
            matrices(step.pictures, "pictures", session.choose_tokens, False, session.palette())
    with st.expander("The code that computes it"):
        st.code(step.code, language="python")
    if not session.is_running():
        session.write_address()


def draw_without(
    ablated: Sequence[str],
    as_it_is: HeadSteps,
    steps: HeadSteps,
    row: int,
    shown: Sequence[Sequence[Matrix]],
) -> None:
    """How much of the weights moves where parts are left out, and the pictures before and after."""
    moved, moved_here = (
        percent(float(total_variation(steps.weights[rows], as_it_is.weights[rows])))
        for rows in (slice(None), slice(row, row + 1))
    )
    names = " and ".join(ablated)
    st.markdown(
        f"Without **{names}**, {moved_here} of this row's weight moves to a different token "
        f"({moved} of all rows' weight)."
    )
    # Titles of one line, so that the two pictures stand at one height.
    for box, title, both, name in zip(
        st.columns(2), ("Before", "After"), shown, ("as_it_is", "pictures"), strict=True
    ):
        with box:
            st.markdown(f"**{title}**")
            matrices(both, name, session.choose_tokens, False, session.palette())


def page() -> None:
    selection.tell_unchanged()
    trace, focus = selection.unchanged().trace, session.focus()  # errors are reported out here
    walkthrough()
    site = trace.kinds[focus.kind][focus.layer]
    name = part_names.short_name(Scope(focus.kind, site.layer, focus.head))
    frame.finding(f"**{name}**, from its input to the output of its layer, in eleven steps.")
    frame.explain(
        "Each step has its formula, its numbers, and the lines of code that computed them. Framed: "
        "the query and the key that you follow. Use ← and → to step."
    )


def exercise_of_step(
    name: str,
    steps: HeadSteps,
    keys: Sequence[str],
    row: int,
    without: Callable[[str], np.ndarray],
) -> Exercise | None:
    """What to try at a step of a head, whose steps these are. `keys`: tokens; `row` is followed;
    `without(part)`: the weights where a part of ABLATIONS is left out. None where a head is alone
    and there is nothing to compare."""
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
            share = float(np.where(steps.mask, 0, without("mask")).sum(axis=1).mean())
            return exercises.without_mask(share, not steps.mask.all())
        case "Softmax":
            largest = (float(w.max(axis=1).mean()) for w in (steps.weights, without("scaling")))
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
