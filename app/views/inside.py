"""One head, step by step, with the sentence that was typed."""

import streamlit as st

from app import state, words
from app.components.matrices import matrices
from app.inside import STEPS, Lesson
from model.heads import elsewhere
from model.inside import LEFT_OUT

st.markdown(
    "From what enters the attention to what its layer gives on: eleven steps, each with its "
    "formula, its numbers, and the lines of code that computed them. The keys ← and → walk.  \n"
    "*Try: at Softmax, leave the scaling out. Why is it there?*"
)

trace, focus = state.current_trace(), state.focus()
query, key = (side.pieces for side in words.sides(trace, focus.kind))
st.subheader(words.head_name(focus.kind, focus.layer, focus.head))


def walk(by: int) -> None:
    at = STEPS.index(st.session_state["at"]) + by
    st.session_state["at"] = STEPS[min(max(at, 0), len(STEPS) - 1)]


def follow(name: str, label: str, pieces, first: str) -> int | None:
    """A choice of a piece that is always there; None for the first option, `first`."""
    options = [first, *(f"{i + 1} {piece}" for i, piece in enumerate(pieces))]
    if st.session_state.get(name, first) not in options:
        st.session_state[name] = first
    chosen = options.index(st.selectbox(label, options, key=name, bind="query-params", width=260))
    return chosen - 1 if chosen else None


@st.fragment
def lesson() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button("Back", icon=":material/arrow_back:", on_click=walk, args=(-1,), shortcut="Left")
        st.button("On", icon=":material/arrow_forward:", on_click=walk, args=(1,), shortcut="Right")
        row = follow("follow", "Follow who asks", query, "the second piece")
        column = follow("to", "to who is looked at", key, "most looked at")
        left_out = st.pills(
            "Leave out",
            LEFT_OUT,
            selection_mode="multi",
            key="without",
            bind="query-params",
            help="Positions are left out of the whole model, the others of this attention.",
        )
    at = st.segmented_control(
        "Step",
        STEPS,
        default=STEPS[0],
        required=True,
        key="at",
        label_visibility="collapsed",
        wrap=True,
        bind="query-params",
    )
    seen = state.inside(tuple(left_out))
    row = min(1, len(query) - 1) if row is None else row
    column = int(seen.weights[row].argmax()) if column is None else column
    model = state.checkpoint().model
    step = Lesson(model, seen, query, key, row, column, left_out).step(STEPS.index(at) + 1)

    st.markdown(f"#### {STEPS.index(at) + 1}. {step.name}")
    st.latex(step.formula)
    st.markdown(f"{step.said}  \n`{step.shapes}`  \n{step.by_hand}")
    matrices(step.pictures, key="pictures")
    if left_out:
        as_it_is = state.inside(())
        moved = elsewhere(seen.weights, as_it_is.weights)
        st.warning(
            f"Left out: {', '.join(left_out)}. {words.percent(float(moved))} of this head's weight "
            "lies elsewhere than it would. Below, the same step as it is."
        )
        same = Lesson(model, as_it_is, query, key, row, column).step(STEPS.index(at) + 1)
        matrices(same.pictures, key="as_it_is")
    st.code(step.code, language="python")


lesson()
