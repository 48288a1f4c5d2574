"""One head, step by step, with the sentence that was typed."""

import streamlit as st

from app import compute, labels, session
from app.components.matrices import matrices
from app.head_lesson import Lesson
from app.settings import LARGEST_WEIGHT, SECOND_TOKEN, STEPS
from model.analysis.head_metrics import total_variation

st.markdown(
    "From what enters the attention to the output of its layer: eleven steps, each with its "
    "formula, its numbers, and the lines of code that computed them. The keys ← and → walk.  \n"
    "*Try: at Softmax, leave the scaling out. Why is it there?*"
)

run = session.run()
view, focus = session.view(run), session.focus()
trace = compute.trace_of(view, run)
where = trace.kinds[focus.kind][focus.layer], focus.head
query, key = (text.tokens for text in trace.texts_of(focus.kind))
st.subheader(labels.head_name(trace, focus.kind, focus.layer, focus.head))


def walk(by: int) -> None:
    at = STEPS.index(session.values()["at"]) + by
    session.choose(at=STEPS[min(max(at, 0), len(STEPS) - 1)])


def followed(name: str, tokens, first: str) -> int | None:
    """A choice of a token that is always there; None for the first option, `first`."""
    options = [first, *(f"{i + 1} {token}" for i, token in enumerate(tokens))]
    chosen = options.index(session.draw(name, options=options))
    return chosen - 1 if chosen else None


@st.fragment
def lesson() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button("Back", icon=":material/arrow_back:", on_click=walk, args=(-1,), shortcut="Left")
        st.button("On", icon=":material/arrow_forward:", on_click=walk, args=(1,), shortcut="Right")
        row = followed("follow", query, SECOND_TOKEN)
        column = followed("to", key, LARGEST_WEIGHT)
        ablated = session.draw("without")
    at = session.draw("at")
    steps = compute.head_steps_of(view, run, *where, ablated)
    row = min(1, len(query) - 1) if row is None else row
    column = int(steps.weights[row].argmax()) if column is None else column
    step = Lesson(view.model, steps, query, key, row, column, ablated).step(STEPS.index(at) + 1)

    st.markdown(f"#### {STEPS.index(at) + 1}. {step.name}")
    st.latex(step.formula)
    st.markdown(f"{step.explanation}  \n`{step.shapes}`  \n{step.by_hand}")
    matrices(step.pictures, key="pictures")
    if ablated:
        as_it_is = compute.head_steps_of(view, run, *where)
        moved = total_variation(steps.weights, as_it_is.weights)
        st.warning(
            f"Left out: {', '.join(ablated)}. {labels.percent(float(moved))} of this head's "
            "weight lies elsewhere than it would. Below, the same step as it is."
        )
        same = Lesson(view.model, as_it_is, query, key, row, column).step(STEPS.index(at) + 1)
        matrices(same.pictures, key="as_it_is")
    st.code(step.code, language="python")


lesson()
