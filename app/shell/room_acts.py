"""The room that this session is in, who it is there, and what it may do. Streamlit reads cookies as
a page connects: those of a room come with an address that opens the page anew."""

import csv
import io
import random

import streamlit as st

from headlight.app.export.view import permalink
from headlight.app.lessons import formatting
from headlight.app.lessons.answers import plain
from headlight.app.server import room_routes, rooms
from headlight.app.server.room_hub import hub
from headlight.app.server.rooms import CLOSED, OPEN, Asked, NoRoom, RoomState, TooMuch
from headlight.app.state import session, settings
from headlight.app.state.pages import Page
from headlight.app.state.settings import OF_ROOMS, SETTINGS

NOT_LED = *OF_ROOMS, "projector"  # settings of a page's own, wherever the class is led


def code() -> str:
    """The code of this session's room; "" outside of rooms."""
    return rooms.as_code(session.values()["room"])


def room() -> RoomState:
    """The room as it is now. Raises NoRoom, also where this session has not joined it: nobody finds
    out which rooms there are."""
    found = hub().room(code())
    if not is_teacher(found) and not room_routes.is_student(found, st.context.cookies):
        raise NoRoom(code())
    return found


def is_teacher(room: RoomState) -> bool:
    return room_routes.is_teacher(room, st.context.cookies)


def student() -> str:
    """Who this browser is in the room."""
    return rooms.student_of(code(), st.context.cookies.get(room_routes.STUDENT + code(), ""))


def append(kind: str, *, by_teacher: bool = True, **body) -> None:
    """Append an event, if this session may. A callback."""
    try:
        if not by_teacher or is_teacher(room()):
            room()  # has this session joined it?
            hub().append(code(), kind, **body)
    except NoRoom:
        pass  # the line says so
    except TooMuch as error:
        session.memo().room_problem = str(error)


def answer(question: Asked, value: object) -> None:
    """A callback."""
    append(rooms.ANSWER, by_teacher=False, key=question.key, student=student(), value=value)


def end() -> None:
    """End the room, with everything in it. A callback."""
    try:
        if is_teacher(room()):
            hub().end(code())
    except NoRoom:
        pass


def leave() -> None:
    """A callback."""
    session.choose(room="", alone=False)


# Leading


def address(page: Page) -> str:
    """The address of what this session shows. Values by default are left out, as in a browser."""
    here = session.context()
    shown = {
        key: value
        for key, value in settings.shared(session.values(), page.key).items()
        if key not in NOT_LED
        and SETTINGS[key].concerns(here)
        and (SETTINGS[key].pages or value != SETTINGS[key].limits(here).default)
    }
    return "/" + permalink(shown | {"room": code()}, page.key)


def lead(page: Page) -> None:
    """The class follows to what this run has drawn, if it is led from here. Called once the picture
    is drawn: the server computes for the teacher first, then for the class."""
    if not code():
        return
    try:
        now = room()
        if now.view and is_teacher(now) and (view := address(page)) != now.view:
            hub().append(code(), rooms.VIEW, address=view, head=head())
    except (NoRoom, TooMuch):
        pass  # the line says so


def head() -> dict | None:
    """The selected head, as the grid takes it."""
    return None if session.context().structure is None else dict(vars(session.focus()))


# Answers


def written(answer: object) -> str:
    """An answer in words."""
    if isinstance(answer, dict):  # what was painted
        return ", ".join(map(str, answer["painted"]))
    if isinstance(answer, list | tuple):
        kind, layer, head = answer
        return f"{kind}, layer {layer + 1}, head {head + 1}"
    if isinstance(answer, float):
        return formatting.number(answer, 4)
    return str(answer)


def as_csv(room: RoomState) -> str:
    """All answers that have been shown, one a row. Students have other numbers in each question, so
    that nobody's answers can be put together."""
    file = io.StringIO()
    table = csv.writer(file)
    table.writerow(("question", "round", "student", "text", "answer", "model"))
    for question in (*room.past, *filter(None, [room.question])):
        students = list(dict.fromkeys(s for answers in question.rounds for s in answers))
        random.shuffle(students)
        for number, answers in enumerate(question.rounds, 1):
            if question.state in (OPEN, CLOSED) and number == len(question.rounds):
                continue
            for name in sorted(answers, key=students.index):
                truth = "" if question.truth is None else written(question.truth)
                texts = map(plain, (question.about["text"], written(answers[name]), truth))
                table.writerow((question.key[0], number, students.index(name) + 1, *texts))
    return file.getvalue()
