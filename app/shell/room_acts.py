"""The room that this session is in, who it is there, and what it may do. Streamlit reads cookies as
a page connects: those of a room come with an address that opens the page anew."""

import csv
import io
import math
import random
import zipfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from headlight.app import selection
from headlight.app.export.view import permalink
from headlight.app.lessons import formatting
from headlight.app.lessons.answers import plain
from headlight.app.lessons.class_plan import ASK, SHOW, Slide, plan
from headlight.app.lessons.question import DO, numbers_in
from headlight.app.server import room_routes, rooms
from headlight.app.server.room_hub import hub
from headlight.app.server.rooms import (
    CLOSED,
    OPEN,
    REVEALED,
    Asked,
    NoRoom,
    RoomState,
    TooMuch,
    Unreachable,
)
from headlight.app.shell import class_remote, running_lesson
from headlight.app.shell.running_lesson import RoomQuestion
from headlight.app.state import session, settings
from headlight.app.state.messages import NothingToShow
from headlight.app.state.options import PLACES
from headlight.app.state.pages import Page
from headlight.app.state.settings import OF_ROOMS, SETTINGS
from headlight.app.text import formats, part_names
from headlight.model.analysis.reading import Reading
from headlight.model.rounding import percent

LONGEST_PLACE = 60  # characters of a name of a place
NO_TEXT = "What do you think?"  # of a question without a text
NOT_LED = *OF_ROOMS, "projector"  # settings of a page's own, wherever the class is led
# Menus and switches that are not there while a page is led: it would be in vain to use them.
IDLE_WHERE_LED = (
    "switches", "switch_head", "importance", "what_if", "display", "shows", "step", "player",
    "undo", "menus",
)  # fmt: skip


class Closed(NoRoom):
    """No room can be reached now. Why, in a sentence."""


def code() -> str:
    """The code of this session's room; "" outside of rooms."""
    return rooms.as_code(session.values().get("room", ""))


def room() -> RoomState:
    """The room as it is now. Raises NoRoom, also where this session has not joined it: nobody finds
    out which rooms there are; and Closed."""
    try:
        found = hub().room(code())
    except OSError as error:
        raise Closed(str(error)) from error
    if not room_routes.is_in(found, st.context.cookies):
        raise NoRoom(code())
    return found


def is_teacher(room: RoomState) -> bool:
    return room_routes.is_teacher(room, st.context.cookies)


def was_in() -> bool:
    """Whether this browser has once joined or started a room of this code."""
    names = room_routes.STUDENT + code(), room_routes.TEACHER + code()
    return any(name in st.context.cookies for name in names)


def here() -> RoomState | None:
    """`room`, or None."""
    try:
        return room() if code() else None
    except NoRoom:  # the line says so
        return None


def is_led() -> bool:
    """Whether the teacher leads this page."""
    if session.memo().context is None or session.values()["alone"]:
        return False
    now = here()
    return bool(now and now.view and not is_teacher(now))


def finding() -> dict[str, Any] | None:
    """What the room asks, in the place of a finding; None where it asks nothing."""
    question = now.question if (now := here()) else None
    return question and {"text": question.about["text"] or NO_TEXT, "stays": True}


def as_led(page: Page) -> Page:
    """The page, without its menus while it is led: a quarter less work."""
    session.memo().is_led = is_led()
    idle = IDLE_WHERE_LED if session.memo().is_led else ()
    return replace(page, idle=(*page.idle, *idle))


def open_view() -> None:
    """The view to which the class is led decides all settings: none of the view before stays."""
    if is_led():
        session.obey([room().view])


def turn() -> AbstractContextManager[Callable[[], None]]:
    """Around a run of a page, see Turns.turn."""
    return hub().turns.turn() if is_led() else nullcontext(lambda: None)


def share() -> AbstractContextManager[None]:
    """Around each run of a student's page and of its regions, see FairShares.run. The cookies say
    whose it is: in its first run a page has no settings yet."""
    cookies = st.context.cookies
    codes = [name[-rooms.LENGTH :] for name in cookies if name.startswith(room_routes.STUDENT)]
    try:
        known = [*filter(None, map(hub().known.get, codes))] if codes else []
    except OSError:  # the line says so
        known = []
    mine = [room.code for room in known if room_routes.is_student(room, cookies)]
    if not mine or any(room_routes.is_teacher(room, cookies) for room in known):
        return nullcontext()
    return hub().shares.run(rooms.student_of(mine[0], cookies[room_routes.STUDENT + mine[0]]))


def student() -> str:
    """The name under which the room counts this browser."""
    return rooms.student_of(code(), st.context.cookies.get(room_routes.STUDENT + code(), ""))


def append(kind: str, *, by_teacher: bool = True, **body) -> None:
    """Append an event, if this session may. A callback."""
    now = here()
    if now and (is_teacher(now) or not by_teacher):
        _attempt(partial(hub().append, code(), kind, **body))


def _attempt(act: Callable[[], object]) -> None:
    try:
        act()
    except NoRoom:  # the line says so
        pass
    except (TooMuch, Unreachable) as error:
        session.memo().room_problem = str(error)


def answer(question: Asked, value: object) -> None:
    """A callback."""
    append(rooms.ANSWER, by_teacher=False, key=question.key, student=student(), value=value)


def end() -> None:
    """End the room, with everything in it. A callback."""
    now = here()
    if now and is_teacher(now):
        _attempt(partial(hub().end, code()))


def leave() -> None:
    """A callback."""
    session.choose(room="", alone=False)


# The question of a lesson


def lesson_question() -> RoomQuestion | None:
    """That which the room asks, if it asks one."""
    now = here()
    question = now and now.question
    if not question or "lesson" not in question.about:
        return None
    is_open = question.state != REVEALED
    mine = None if is_open else question.answers.get(student())
    return RoomQuestion(**question.about["lesson"], is_open=is_open, answer=mine)


def of_lesson() -> dict | None:
    """The open question of the lesson that runs here, as the room asks it; None if there is none,
    or it is one that is answered by doing something."""
    now = running_lesson.running()
    if now is None or not now.is_open or now.in_room or now.step.kind == DO:
        return None
    question, about = now.asked, {"text": now.asked.text, "choices": []}
    match question.kind:
        case "choose":
            about |= {"kind": "choose", "choices": [*map(str, question.choices)]}
        case "number":
            about |= {"kind": "number", "share": question.share}
        case "find":
            about |= {"kind": "head", "heads": heads()}
        case "paint" if question.answer.ndim == 1:
            head = now.step.head(now.run)
            assert head is not None  # else nothing is painted
            about |= {"kind": "paint", "choices": [*now.run.keys(head)]}
        case _:
            return None
    about["lesson"] = {
        "lesson": now.lesson.name,
        "step": now.step.number,
        "seed": running_lesson.progress().seed,
        "attempt": now.attempt,
        "model": now.run.name,
        "sentence": now.run.sentence,
    }
    return about


def run_plan() -> None:
    """In the plan for a class, Ask puts its question to the room, once, and Show closes it."""
    now, at, in_room = class_remote.slide(), session.values()["plan"], here()
    if now is None or in_room is None:
        return
    question = in_room.question
    asked = [each.about.get("plan") for each in (*in_room.past, question) if each]
    if now.kind == ASK and at not in asked:
        if about := _of_plan(now, at):
            append(rooms.ASK, about=about)
    elif now.kind == SHOW and question and question.state == OPEN and "plan" in question.about:
        append(rooms.CLOSE, key=question.key)


def _of_plan(slide: Slide, at: int) -> dict | None:
    """A question of the plan, as the room asks it; None if the page lacks the words to choose."""
    about = {"text": slide.text, "choices": [], "plan": at}
    match slide.answers:
        case "word":
            about |= {"kind": "token", "choices": words()}
            return about if about["choices"] else None
        case "number" | "share":
            return about | {"kind": "number", "share": slide.answers == "share"}
    return about | {"kind": "choose", "choices": [*slide.answers]}


def truth(question: Asked) -> object:
    """What is right, as the plan says, or the model does in the step that this session shows; or
    None."""
    return _truth_of_plan(question) if "plan" in question.about else _truth_of_lesson(question)


def _truth_of_plan(question: Asked) -> object:
    right, choices = plan().slides[question.about["plan"] - 1].right, question.about["choices"]
    if question.about["kind"] != "token":
        return right
    return next((choice for choice in choices if word(choice) == right), None)


def word(choice: str) -> str:
    """Words are numbered: one may occur twice."""
    return choice.partition(" ")[2]


def words() -> list[str]:
    """The tokens of the source, numbered; empty on a page without any."""
    try:
        labels = part_names.side_labels(selection.run().texts[0], Reading())[0]
    except NothingToShow:
        return []
    return [f"{i + 1} {token}" for i, token in enumerate(labels)]


def _truth_of_lesson(question: Asked) -> object:
    now = running_lesson.running()
    asked = question.about.get("lesson")
    if now is None or not now.in_room or not asked:
        return None
    if (now.lesson.name, now.step.number) != (asked["lesson"], asked["step"]):
        return None
    answer = now.asked.answer
    match question.about["kind"]:
        case "head":
            return [[*head] for head in sorted(answer)]
        case "paint":
            return answer.tolist()
        case "number":
            number = float(answer) if not isinstance(answer, str) else numbers_in(answer)[0]
            return number if math.isfinite(number) else None
    return str(answer)


def heads() -> list[list]:
    """Kind, its title, and how many layers and heads it has; empty where no model can be read."""
    structure = session.context().structure
    return [
        [kind, sites[0].title.capitalize(), len(sites), sites[0].n_heads]
        for kind, sites in (structure.kinds.items() if structure else ())
    ]


# Leading


def address(page: Page) -> str:
    """The address of what this session shows. Values by default are left out, as in a browser,
    unless they depend on the model or the text: a follower's page may come from others."""
    context = session.context()
    hidden = (*NOT_LED, *(("plan", "picture") if class_remote.is_shown(page) else ()))
    shown = {
        key: value
        for key, value in settings.shared(session.values(), page.key).items()
        if key not in hidden
        and SETTINGS[key].concerns(context)
        and (SETTINGS[key].pages or SETTINGS[key].opens or value != SETTINGS[key].default)
    }
    link = "/" + permalink(shown | {"room": code()}, page.key)
    place = urlencode(session.memo().led_to) if page.stage else ""
    return f"{link}&{place}" if place else link


def hear_place(place: Mapping) -> None:
    """Where on the stage the teacher's browser is. It may send anything."""
    session.memo().led_to = {
        name: value[:LONGEST_PLACE]
        for name in (*PLACES, "cell", "scaling")
        if isinstance(value := place.get(name), str)
    }


def lead(page: Page) -> None:
    """The class follows to what this run has drawn, if it is led from here. Called once the picture
    is drawn: the server computes for the teacher first, then for the class. The teacher's way back
    to the plan leads nobody."""
    now = here()
    if now and now.view and is_teacher(now) and not class_remote.is_shown(page):
        view = address(page)
        if view != now.view:
            append(rooms.VIEW, address=view, head=head())


def head() -> dict | None:
    """The selected head and cell, as the grid takes them."""
    if session.context().structure is None:
        return None
    return {**session.focus()._asdict(), "cell": session.chosen_cell()}


def selected_head() -> list:
    """As it is answered: kind, layer and head; empty where no model can be read."""
    if session.context().structure is None:
        return []
    return [*session.focus()]


def offer(page: Page) -> None:
    """Send the teacher what this page shows. A callback."""
    append(rooms.OFFER, by_teacher=False, student=student(), address=address(page))


def hand_in(lesson: str, file: str) -> None:
    """Send the teacher the file of a lesson's answers. A callback."""
    append(rooms.HAND_IN, by_teacher=False, student=student(), lesson=lesson, file=file)


def has_handed_in(lesson: str) -> bool | None:
    """None outside of a room, and for its teacher."""
    now = here()
    if now is None or is_teacher(now):
        return None
    return (student(), lesson) in now.handed_in


def as_zip(room: RoomState) -> bytes:
    """The files that were handed in, which `headlight lessons report` reads."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as folder:
        for i, ((_, lesson), text) in enumerate(room.handed_in.items(), 1):
            folder.writestr(f"{lesson}-{i}.json", text)
    return file.getvalue()


# Answers


def written(answer: object) -> str:
    """An answer in words."""
    if isinstance(answer, list) and all(isinstance(part, list) for part in answer):
        return " or ".join(map(written, answer))
    if isinstance(answer, list) and not isinstance(answer[0], str):  # painted
        return ", ".join(percent(share) for share in answer)
    if isinstance(answer, list):
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
                text = formats.as_text(question.about["text"])
                texts = map(plain, (text, written(answers[name]), truth))
                table.writerow((question.key[0], number, students.index(name) + 1, *texts))
    return file.getvalue()
