"""The lessons: what each is about, how long it takes, and where one stands."""

import streamlit as st

from headlight.app.lessons import class_plan
from headlight.app.shell import frame, lesson, running_lesson
from headlight.app.state import messages, session
from headlight.app.text import formats


def page() -> None:
    frame.finding("Predict what the model does. Then see what it did.")
    frame.explain(
        "The model itself answers every question. The answer stays covered until you have given "
        "yours. Your own sentence and settings come back when you leave a lesson."
    )
    state = running_lesson.progress()
    for name, each in running_lesson.lessons().items():
        front = each.source.front
        answered = len({given.step for given in state.answers.get(name, ())})
        questions = sum(step.kind != "read" for step in each.steps)
        where = "done" if name in state.done else f"{answered} of {questions} answered"
        with st.container(
            horizontal=True, vertical_alignment="center", key=f"lesson_row {name}", gap="medium"
        ):
            st.button(
                formats.escaped(each.title),
                on_click=running_lesson.start,
                args=(name,),
                key=f"start {name}",
                type="primary" if session.values()["lesson"] == name else "secondary",
                width=470,
            )
            paper = f" · paper, section {front['paper']}" if front.get("paper") else ""
            done = ":material/check: done" if where == "done" else where
            shown = f" · {done}" if answered or name in state.done else ""
            st.caption(f"{each.minutes} minutes{paper}{shown}")
    for name in state.answers:
        if name in running_lesson.lessons():
            with st.expander(f"My answers: {running_lesson.lessons()[name].title}"):
                lesson.draw_download(name)
    for error in running_lesson.broken():
        messages.show_message(error, st.warning)
    with st.expander("In class: a plan for 45 or 90 minutes", key="class_plan"):
        draw_class_plan()


def draw_class_plan() -> None:
    """Every step, unfolded. theme.PLAN_STYLE prints them on two sheets."""
    st.caption("Print this page for all steps on two sheets, the first with the 45 minutes.")
    for section in class_plan.sections():
        heading = "###" if section.is_step else "##"
        st.markdown(f"{heading} {section.title}\n\n{section.body}")
