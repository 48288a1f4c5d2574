"""The lessons as cards, and the plan for a class."""

import streamlit as st

from headlight.app.components.class_steps import StepRow, class_steps
from headlight.app.components.lesson_cards import LessonCard, lesson_cards
from headlight.app.components.room import room_form
from headlight.app.lessons import covered
from headlight.app.lessons.class_plan import plan
from headlight.app.lessons.lesson import LiveLesson
from headlight.app.server import lan
from headlight.app.shell import class_remote, frame, lesson, running_lesson
from headlight.app.state import catalog, messages, session
from headlight.app.state.pages import IN_CLASS
from headlight.app.text import formats

BELOW = 48  # pixels: what is folded below the cards


def page() -> None:
    if session.values().get("picture") == IN_CLASS:
        draw_class_plan()
    else:
        draw_lessons()


def draw_lessons() -> None:
    """A card for each, and what was answered."""
    state, last = running_lesson.progress(), running_lesson.memo().finished
    frame.finding(lesson.after_finish(last) or "Predict what the model does. Then see what it did.")
    cards = [card(number, each) for number, each in enumerate(running_lesson.lessons().values(), 1)]
    with_answers = [name for name in running_lesson.lessons() if state.answers.get(name)]
    lesson_cards(
        cards,
        running_lesson.next_lesson(),
        BELOW if with_answers else 0,
        session.palette(),
        on_start=running_lesson.start,
    )
    if with_answers:
        with st.expander("My answers, as files for a teacher", key="my_answers"):
            for name in with_answers:
                st.markdown(f"**{formats.escaped(running_lesson.lessons()[name].title)}**")
                lesson.draw_download(name)
    for error in running_lesson.broken():
        messages.show_message(error, st.warning)


def card(number: int, of: LiveLesson) -> LessonCard:
    """The card of a lesson: its picture, its question, and how many steps are done."""
    state, name = running_lesson.progress(), of.name
    right, answered = running_lesson.score(name)
    questions = sum(step.kind != "read" for step in of.steps)
    is_done = name in state.done
    return LessonCard(
        name=name,
        number=number,
        title=of.title,
        question=formats.emphasised(of.question),
        minutes=of.minutes,
        answered=answered,
        questions=answered if is_done else questions,
        right=right if is_done else None,
        step=running_lesson.next_step(name),
        steps=len(of.steps),
        picture=covered.of_lessons().get(name),
    )


def draw_class_plan() -> None:
    """Every step; printed, all of them unfolded on two sheets."""
    given = plan()
    frame.finding("Ask first, then show. Both open in Present, in this tab.")
    if given.model not in catalog.models():
        frame.notices().warning(f"The plan needs the model {given.model}, which is not here.")
    rows = [
        StepRow(
            step.title,
            step.minutes,
            formats.emphasised(step.write),
            [
                (name, formats.emphasised(text))
                for name, text in (("Why", step.why), ("Misconception", step.misconception))
                if text
            ],
            picture,
        )
        for step, picture in zip(given.steps, covered.of_plan(), strict=True)
    ]
    look = {
        "short": given.short,
        "exit": formats.emphasised(given.exit),
        "here": "learn",
        "palette": session.palette(),
        "folded": session.values()["projector"],
    }
    if not session.values()["room"]:
        with st.container(key="join", horizontal=True, vertical_alignment="center"):
            room_form()
            if not lan.class_address():
                st.caption("Start the app with `make serve`, so that others can reach it.")
    class_steps(rows, class_remote.links(), session.values()["plan"], look)
