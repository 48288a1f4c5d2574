"""The lessons as cards, and the plan for a class."""

import re

import streamlit as st

from headlight.app.components.lesson_cards import LessonCard, lesson_cards
from headlight.app.lessons import class_plan
from headlight.app.lessons.lesson import LiveLesson, pictures
from headlight.app.shell import frame, lesson, running_lesson
from headlight.app.state import messages
from headlight.app.text import formats

BELOW = 48  # pixels: what is folded below the cards


def page() -> None:
    state, last = running_lesson.progress(), running_lesson.memo().finished
    frame.finding(lesson.after_finish(last) or "Predict what the model does. Then see what it did.")
    cards = [card(number, each) for number, each in enumerate(running_lesson.lessons().values(), 1)]
    with_answers = [name for name in running_lesson.lessons() if state.answers.get(name)]
    lesson_cards(
        cards,
        running_lesson.next_lesson(),
        BELOW if with_answers else 0,
        on_start=running_lesson.start,
    )
    if with_answers:
        with st.expander("My answers, as files for a teacher", key="my_answers"):
            for name in with_answers:
                st.markdown(f"**{formats.escaped(running_lesson.lessons()[name].title)}**")
                lesson.draw_download(name)
    for error in running_lesson.broken():
        messages.show_message(error, st.warning)
    with st.expander("In class: a plan for 45 or 90 minutes", key="class_plan"):
        draw_class_plan()


def card(number: int, of: LiveLesson) -> LessonCard:
    """How a lesson looks from outside, and how far one is in it."""
    state, name = running_lesson.progress(), of.name
    right, answered = running_lesson.score(name)
    questions = sum(step.kind != "read" for step in of.steps)
    is_done = name in state.done
    return LessonCard(
        name=name,
        number=number,
        title=of.title,
        question=parts(of.question),
        minutes=of.minutes,
        answered=answered,
        questions=answered if is_done else questions,
        right=right if is_done else None,
        step=running_lesson.next_step(name),
        steps=len(of.steps),
        picture=pictures().get(name),
    )


def parts(markdown: str) -> formats.Parts:
    """Words, and those between two * as emphasised."""
    return [
        (words, "em" if i % 2 else "")
        for i, words in enumerate(re.split(r"\*([^*]+)\*", markdown))
        if words
    ]


def draw_class_plan() -> None:
    """Every step, unfolded. theme.PLAN_STYLE prints them on two sheets."""
    st.caption("Print this page for all steps on two sheets, the first with the 45 minutes.")
    for section in class_plan.sections():
        heading = "###" if section.is_step else "##"
        st.markdown(f"{heading} {section.title}\n\n{section.body}")
