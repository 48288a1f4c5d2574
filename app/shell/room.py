"""What is drawn of a room, for those who are in one: its line, and what it asks. A region of its
own, so that a question draws nothing else anew."""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache, partial
from html import escape

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from headlight.app.components.paint import paint
from headlight.app.components.poll_results import results
from headlight.app.components.room import Invitation, room_line
from headlight.app.lessons.question import numbers_in, painted_row
from headlight.app.server import lan, rooms
from headlight.app.server.room_hub import hub
from headlight.app.server.rooms import CLOSED, OPEN, REVEALED, SHOWN, Asked, NoRoom, RoomState
from headlight.app.shell import room_acts, running_lesson, stage
from headlight.app.shell.layout import row
from headlight.app.state import session
from headlight.app.state.messages import show_message
from headlight.app.state.pages import Page
from headlight.app.text import formats

REGION = "room"
LONGEST, MOST_CHOICES = 300, 8
KINDS = {"choose": "Choices", "number": "A number", "token": "A word", "head": "A head"}
NOT_IN = "This browser is not in room {}."
ENDED = "Room {} has ended."
UNKNOWN = "Choose it to reveal it"
TOO_FEW = "Write at least two choices, one per line."
NO_WORDS = "This page has no source sentence to choose a word from."
NO_HEADS = "This page has no model to choose a head from."
NO_SHARE = "A share is between 0 and 100%."
NO_SUCH_HEAD = "This question is about another model. Open that one, then select a head."
HIDDEN = "Nobody sees any answers until you show them, not even you."
HERE_ALONE = (
    "Only this computer can open the app now. Stop it, and start it with `make serve`, so that "
    "others can join."
)


@st.fragment(key=REGION)
def draw(page: Page, panel: DeltaGenerator) -> None:
    """The line of the room, and in `panel` what it asks."""
    is_region = not session.is_running()
    with (
        room_acts.share() if is_region else nullcontext(),
        session.running(page.key) if is_region else nullcontext(),
    ):
        if is_region and (
            room_acts.lesson_question() != running_lesson.memo().in_room  # what is covered changes
            or room_acts.is_led() != session.memo().is_led  # what else is there changes
            or room_acts.finding() != session.memo().room_said
            # With an act in one message Streamlit (1.67) draws it alone.
            or not session.shows_all_but(())
        ):
            st.rerun()
        with row("room_line"):
            try:
                room = room_acts.room()
            except NoRoom as error:
                _draw_no_room(error)
                return
            if room_acts.is_teacher(room):
                _draw_teachers_line(page, room)
            else:
                _draw_students_line(page, room)
        with panel.container(key="room_panel", gap="small"):
            if problem := session.memo().room_problem:
                session.memo().room_problem = ""
                show_message(problem, st.warning)
            if room.question:
                _draw_question(room, room.question)


def _leave() -> None:
    """A callback of the region: the rest of the page goes back to what it is without a room."""
    room_acts.leave()
    st.rerun()


def _draw_no_room(error: NoRoom) -> None:
    code = room_acts.code()
    if isinstance(error, room_acts.Closed):
        st.markdown(str(error))
    elif room_acts.was_in():
        st.markdown(ENDED.format(code))
    else:
        st.markdown(NOT_IN.format(code))
        # As a page of its own: the answer sets a cookie, which Streamlit reads as a page connects.
        st.html(f'<a href="/room/{code}" target="_self">Join it</a>', width="content")
    st.button("Leave", on_click=_leave, key="leave_room", type="tertiary")


# The line


def _draw_line(page: Page, room: RoomState, text: str, following: bool) -> None:
    st.html(f"<b>Room {room.code}</b><span> · {text}</span>", width="content")
    teaches = room_acts.is_teacher(room)
    invitation = _invitation(lan.class_address() or _origin(), room.code) if teaches else None
    room_line(
        room.code, room.mark_for(teaches), following, teaches, room_acts.address(page), invitation,
        partial(_hear_place, page) if page.stage and _needs_place(room, teaches) else None,
    )  # fmt: skip


def _needs_place(room: RoomState, teaches: bool) -> bool:
    """Whether it matters where on the stage this browser is: who leads is followed, and who is
    asked for a head has it selected."""
    question = room.question
    asks = question and question.state == OPEN and question.about["kind"] == "head"
    return bool(room.view) if teaches else bool(asks)


def _hear_place(page: Page, told: Mapping) -> None:
    """A callback."""
    stage.take(told.get("selection"))
    room_acts.hear_place(told.get("place") or {})
    room_acts.lead(page)


def _origin() -> str:
    """Where this browser finds the app."""
    return "/".join((st.context.url or "http://localhost").split("/")[:3])


@lru_cache(maxsize=rooms.MOST_ROOMS)
def _invitation(address: str, code: str) -> Invitation:
    link = f"{address}/room/{code}"
    svg = lan.qr_code(link).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return Invitation(link, f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}")


def _draw_teachers_line(page: Page, room: RoomState) -> None:
    crowd = hub().crowd(room.code)
    counts = (
        f"<span data-room=here>{crowd['here']}</span> here, "
        f"<span data-room=following>{crowd['following']}</span> following"
    )
    _draw_line(page, room, counts, True)
    # Under a name of its own for each state: it shows the room's, whoever changed that.
    name = f"follow_me_{'on' if room.view else 'off'}"
    st.toggle(
        "Follow me",
        bool(room.view),
        key=name,
        on_change=lambda: room_acts.append(
            rooms.VIEW, address="" if room.view else room_acts.address(page), head=room_acts.head()
        ),
        help="On: everybody's page shows what this page shows.",
    )
    # Under a name of its own for each question: it closes once that is asked.
    with st.popover("Ask", key=f"ask_{room.asked}", on_change="rerun") as ask:
        if ask.open:
            _draw_ask()
    if room.past or (room.question and room.question.state in (SHOWN, REVEALED)):
        st.download_button(
            "Answers", partial(room_acts.as_csv, room), f"room-{room.code}.csv", "text/csv",
            key="room_csv", on_click="ignore", type="tertiary", icon=":material/download:",
        )  # fmt: skip
    if room.offered:
        with st.popover(f"Views: {len(room.offered)}", key="views", type="tertiary"):
            st.markdown("Sent by students. Those who follow see the one that you open.")
            for i, view in enumerate(room.offered.values(), 1):
                st.html(f'<a href="{escape(view)}" target="_self">View {i}</a>')
    if room.handed_in:
        st.download_button(
            f"Handed in: {len(room.handed_in)}", partial(room_acts.as_zip, room),
            f"room-{room.code}.zip", "application/zip", key="room_zip", on_click="ignore",
            type="tertiary", icon=":material/download:",
        )  # fmt: skip
    with st.popover("End", key="end", type="tertiary", on_change="rerun") as end:
        if end.open:
            st.markdown("The room and all its answers are deleted. Save the answers first.")
            st.button("End the room", on_click=_end, key="end_room", type="primary")
    if not lan.class_address():
        with st.popover("", icon=":material/info:", key="reach", type="tertiary"):
            st.markdown(HERE_ALONE)


def _end() -> None:
    room_acts.end()
    if not session.memo().room_problem:
        _leave()


def _draw_students_line(page: Page, room: RoomState) -> None:
    alone = session.values()["alone"]
    state = "looking around" if alone else "following" if room.view else "joined"
    _draw_line(page, room, state, not alone)
    if alone:
        st.button("Follow", on_click=partial(session.choose, alone=False), key="follow_teacher")
        is_sent = room.offered.get(room_acts.student()) == room_acts.address(page)
        st.button(
            "View sent" if is_sent else "Send my view", on_click=partial(room_acts.offer, page),
            key="send_view", disabled=is_sent, help="The teacher can show it to everyone.",
        )  # fmt: skip
    elif room.view:
        st.button("Look around", on_click=partial(session.choose, alone=True), key="look_around")
    st.button("Leave", on_click=_leave, key="leave_room", type="tertiary")


# A question


def _draw_ask() -> None:
    now = running_lesson.running()
    if about := room_acts.of_lesson():
        st.button(
            "Ask this lesson's question",
            on_click=partial(room_acts.append, rooms.ASK, about=about),
            key="ask_lesson",
            type="primary",
        )
        st.caption("Or a question of your own:")
    elif now and now.is_open:
        st.caption("Everybody answers this step's question by themselves.")
    kind = st.segmented_control(
        "Answer", list(KINDS), default="choose", format_func=KINDS.__getitem__, key="poll_kind",
        required=True, label_visibility="collapsed",
    )  # fmt: skip
    st.text_input("Question", key="poll_text", max_chars=LONGEST, placeholder=room_acts.NO_TEXT)
    if kind == "choose":
        st.text_area("Choices, one per line", key="poll_choices", max_chars=2000)
    st.button("Ask everyone", on_click=_ask_poll, key="ask_poll", type="primary")


def _ask_poll() -> None:
    """A callback."""
    state = st.session_state
    kind, text = state["poll_kind"], state["poll_text"].strip()[:LONGEST]
    about = {"kind": kind, "text": formats.escaped(text), "choices": []}
    if kind == "choose":
        lines = dict.fromkeys(line.strip()[:LONGEST] for line in state["poll_choices"].splitlines())
        about["choices"] = [line for line in lines if line][:MOST_CHOICES]
        if len(about["choices"]) < 2:
            session.memo().room_problem = TOO_FEW
            return
    elif kind == "token":
        about["choices"] = room_acts.words()
        if not about["choices"]:
            session.memo().room_problem = NO_WORDS
            return
    elif kind == "head":
        about["heads"] = room_acts.heads()
        if not about["heads"]:
            session.memo().room_problem = NO_HEADS
            return
    room_acts.append(rooms.ASK, about=about)


def _draw_question(room: RoomState, question: Asked) -> None:
    """What is asked stands in the place of the finding."""
    number, round_ = question.key
    st.caption(f"Question {number}" + (f", round {round_}" if round_ > 1 else ""))
    if question.state in (SHOWN, REVEALED):
        st.html(results(question.about, question.rounds, question.truth))
    if room_acts.is_teacher(room):
        _draw_acts(question)
    elif question.state == OPEN:
        _draw_answers(question)
    else:
        mine = question.answers.get(room_acts.student())
        answered = "You gave no answer." if mine is None else _shown(question.about, mine)
        st.markdown(f"Closed. {answered}" if question.state == CLOSED else answered)


def _draw_acts(question: Asked) -> None:
    """What the teacher does next."""

    def button(label: str, kind: str, primary: bool = False, **body) -> None:
        st.button(
            label,
            on_click=partial(room_acts.append, kind, key=question.key, **body),
            key=f"act_{kind}",
            type="primary" if primary else "secondary",
        )

    truth = None
    if question.state in (CLOSED, SHOWN):
        truth = room_acts.truth(question)
        truth = _draw_choice_of_truth(question) if truth is None else truth
    is_hidden = question.state in (OPEN, CLOSED)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if is_hidden:
            count = f"<b data-room=answers style='font-size:1.6em'>{len(question.answers)}</b>"
            st.html(f"{count} answered", width="content")
        if question.state == OPEN:
            button("Close", rooms.CLOSE, True)
        if question.state == CLOSED:
            button("Show answers", rooms.SHOW, True)
        if question.state in (CLOSED, SHOWN):
            button("Ask again", rooms.AGAIN)
        if truth is not None:
            button("Reveal", rooms.REVEAL, question.state == SHOWN, truth=truth)
        button("Done", rooms.DONE, question.state == REVEALED)
    if is_hidden:
        st.caption(HIDDEN)


def _draw_choice_of_truth(question: Asked) -> object:
    """Which answer is right, as the teacher says; None while none is."""
    about, name = question.about, f"truth_{question.key[0]}"
    if about["kind"] in ("choose", "token"):
        return st.selectbox(
            "Right answer", about["choices"], index=None, key=name, placeholder=UNKNOWN,
            format_func=lambda choice: _label(about, choice),
        )  # fmt: skip
    if about["kind"] == "number":
        text = st.text_input("Right answer", key=name, max_chars=40, placeholder=UNKNOWN)
        try:
            return _number_in(text, about) if text.strip() else None
        except ValueError as error:
            show_message(error, st.warning)
            return None
    if about["kind"] == "paint":
        st.caption("Open the lesson's step again to reveal what the model does.")
        return None
    st.caption("*Reveal* frames the head that this page has selected.")
    return [*filter(None, [room_acts.selected_head()])] or None


def _draw_answers(question: Asked) -> None:
    """The ways to answer; the answer that has arrived is marked."""
    mine, about = question.answers.get(room_acts.student()), question.about
    name = f"{question.key[0]}.{question.key[1]}"
    if about["kind"] in ("choose", "token"):
        is_line = about["kind"] == "token"
        with st.container(horizontal=is_line, gap="xsmall", key=f"room_choices {name}"):
            for i, choice in enumerate(about["choices"]):
                st.button(
                    formats.escaped(_label(about, choice)),
                    on_click=partial(room_acts.answer, question, choice),
                    key=f"room_choice_{i}_{name}",
                    type="primary" if mine == choice else "secondary",
                )
    elif about["kind"] == "number":
        box = f"room_number_{name}"
        with st.form(f"room_form_{name}", border=False), st.container(horizontal=True):
            st.text_input("Your answer", key=box, label_visibility="collapsed", max_chars=40)
            st.form_submit_button(
                "Answer",
                on_click=_answer,
                args=(question, lambda: _number_in(st.session_state[box], about)),
            )
    elif about["kind"] == "paint":
        paint(
            f"room_paint_{name}", about["choices"], False,
            on_painted=lambda painted: _answer(question, lambda: _row_in(painted, about)),
        )  # fmt: skip
    else:
        st.button(
            "Answer with the selected head",
            on_click=partial(_answer, question, lambda: _head_in(about)),
            key=f"room_head_{name}",
            help="Select a head on this page first.",
        )
    if mine is not None:
        st.caption(f"{_shown(about, mine)} You can change it until it is closed.")


def _answer(question: Asked, read: Callable[[], object]) -> None:
    """A callback: answer with what `read` reads. It raises ValueError, with a sentence, for what is
    no answer. A browser may send anything."""
    try:
        room_acts.answer(question, read())
    except ValueError as error:
        session.memo().room_problem = str(error)


def _number_in(text: str, about: Mapping) -> float:
    share = bool(about.get("share"))
    number = numbers_in(text, share)[0]
    if share and not 0 <= number <= 1:
        raise ValueError(NO_SHARE)
    return number


def _row_in(painted: Sequence, about: Mapping) -> list[float]:
    return painted_row(painted, len(about["choices"])).round(4).tolist()


def _head_in(about: Mapping) -> list:
    """The teacher's model may have other heads than that of this page."""
    head = room_acts.selected_head()
    sizes = {kind: (layers, heads) for kind, _, layers, heads in about["heads"]}
    if not head or not all(map(int.__lt__, head[1:], sizes.get(head[0], (0, 0)))):
        raise ValueError(NO_SUCH_HEAD)
    return head


def _label(about: Mapping, choice: str) -> str:
    return room_acts.word(choice) if about["kind"] == "token" else choice


def _shown(about: Mapping, answer: object) -> str:
    if about["kind"] == "paint":
        return "Your row has arrived."
    return f"Your answer: **{formats.escaped(_label(about, room_acts.written(answer)))}**."
