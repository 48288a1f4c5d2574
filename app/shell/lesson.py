"""The step of a lesson: its question in the place of the finding, what one answers with and
the way on at the foot."""

from functools import partial
from typing import Any

import streamlit as st

from headlight.app.components.browser import follow_link, local_storage
from headlight.app.components.paint import paint
from headlight.app.export.assignment import students_zip
from headlight.app.export.view import permalink
from headlight.app.lessons import formatting
from headlight.app.lessons.question import CHOOSE, DO, FIND, NUMBER, PAINT, Mark
from headlight.app.shell import room_acts, running_lesson
from headlight.app.shell.layout import st_page
from headlight.app.shell.running_lesson import Running
from headlight.app.state import session, settings
from headlight.app.state.messages import show_message
from headlight.app.state.pages import EXPORT, PAGES, Page
from headlight.app.text import formats
from headlight.model.rounding import percent

WRITTEN = CHOOSE, NUMBER, FIND  # kinds of question whose answer is said in words
COVERED = "Covered until you answer the lesson's question, or press *Show me*."
NO_EXPORT = "You cannot export while a question is open. Answer it, or press *Show me*."


def draw(page: Page) -> None:
    """The lesson that runs, if one does."""
    now, problem = running_lesson.running(), running_lesson.memo().problem
    if problem:
        show_message(problem, st.warning)
        st.button("Leave the lesson", on_click=running_lesson.leave, key="leave_lesson")
    elif now:
        _draw_step(now, page)


def finding() -> dict[str, Any] | None:
    """What the lesson says in the place of a finding, in Markdown: what it asks, or how the answer
    was. None without a lesson, and where a room asks."""
    now = running_lesson.running()
    if now is None or (now.in_room and now.is_open):
        return None
    if now.given:
        said = [f"{_verdict(now).strip()} {_reveal(now)}".strip()]
    elif now.problem:
        said = [now.problem]
    else:
        said = [now.asked.text]
        if now.first:
            said.insert(0, f"{_said(now, now.first.answer)}Try once more. {now.asked.hint}")
    if _is_over(now):
        ends = ("Remember", now.lesson.remember), ("But", now.lesson.limit)
        said += [f"**{title}.** {text}" for title, text in ends if text]
    return {"text": "\n\n".join(filter(None, said)), "stays": True}


def place() -> dict[str, Any] | None:
    """Where in a lesson one is, and what its step uses: `acts`, or a sentence that is `typed`."""
    now = running_lesson.running()
    if now is None:
        return None
    return {
        "title": now.lesson.title,
        "step": now.step.number,
        "steps": len(now.lesson.steps),
        "depth": now.step.place["depth"],
        "acts": now.step.kind == DO,
        "typed": now.step.kind == DO or now.step.asks_own_sentence,
        "choices": running_lesson.choices(),
        "heads": now.is_open and not now.in_room and now.asked.kind == FIND,
    }


def _is_over(now: Running) -> bool:
    return now.step.number == len(now.lesson.steps) and not (now.is_open or now.waits)


def after_finish(name: str) -> str:
    """How it went, in Markdown; "" without a lesson that has just been finished."""
    if not name:
        return ""
    right, questions = running_lesson.score(name)
    title = formats.escaped(running_lesson.lessons()[name].title)
    return f"**{right} of {questions}** right at the first answer in *{title}*."


def draw_finished(page: Page) -> None:
    """After a lesson: how it went, and the next one. It stands where the lesson stood until one of
    its ways is taken."""
    name = running_lesson.memo().finished
    if not name or page.key == running_lesson.LEARN_PAGE or session.values()["lesson"]:
        return
    st.success(after_finish(name))
    following = running_lesson.lessons()[running_lesson.next_lesson()]
    if following.name not in running_lesson.progress().done:
        st.button(
            f"Next: {formats.escaped(following.title)} · {following.minutes} min",
            on_click=running_lesson.start,
            args=(following.name,),
            key="next_lesson",
            type="primary",
            width="stretch",
        )
    with st.container(horizontal=True, key="after_lesson"):
        st.page_link(st_page(PAGES[running_lesson.LEARN_PAGE]), label="All lessons")
        st.button("Close", on_click=running_lesson.close, key="close_finished", type="tertiary")


def keep_answers() -> None:
    """What was answered stays in the browser."""
    local_storage(session.memo().session, running_lesson.to_browser(), running_lesson.from_browser)


def draw_cover(page: Page) -> None:
    """Say why a page is covered: it would give the answer away."""
    st.info(NO_EXPORT if page.key == EXPORT else COVERED, icon=":material/visibility_off:")


def _draw_step(now: Running, page: Page) -> None:
    """What one answers with, and the way on, in a line; the text stands in the place of the
    finding."""
    _draw_place(now, page)
    if now.is_open and not now.in_room:
        _draw_question(now)
    elif now.given:
        _draw_painted(now)
        _draw_again(now)
    if is_over := _is_over(now):
        with st.popover("Your answers", type="tertiary", key="lesson_files"):
            _draw_exercise(now.lesson.source.front.get("write"))
            draw_download(now.lesson.name)
    _draw_ways(now, is_over or now.waits)


def _draw_place(now: Running, page: Page) -> None:
    """The way to where the step stands, if that is elsewhere."""
    place = running_lesson.page_of_step()
    if place and place != page.key:
        with st.container(key="lesson_link"):
            st.page_link(
                st_page(PAGES[place]),
                label=f"This step continues on the page {PAGES[place].title}",
                icon=":material/arrow_forward:",
            )
        if running_lesson.memo().leads_to == place:
            view = permalink(settings.shared(session.values(), place), place)
            follow_link(view, page.path or "", running_lesson.memo().shown)
    elif place:
        running_lesson.memo().leads_to = ""
    if now.is_elsewhere and not now.step.asks_own_sentence and now.step.kind != DO:
        st.button(
            "Back to the sentence of this step",
            icon=":material/undo:",
            on_click=running_lesson.show_view,
            args=(now.step, now.run),
            key="show_view",
            type="tertiary",
        )


def _draw_question(now: Running) -> None:
    step = f"{now.lesson.name} {now.step.number} {now.attempt}"
    question = now.asked
    if question.kind == CHOOSE:
        with st.container(horizontal=True, width="content", gap="small", key="lesson_choices"):
            for i, choice in enumerate(question.choices):
                if now.first and choice == now.first.answer:
                    continue
                st.button(
                    formats.escaped(choice),
                    on_click=running_lesson.answer,
                    args=(choice,),
                    key=f"choice {i} {step}",
                )
    elif question.kind == NUMBER:
        box = f"number {step}"
        with (
            st.form(f"form {step}", border=False, width="content"),
            st.container(horizontal=True, width="content"),
        ):
            st.text_input("Your answer", key=box, label_visibility="collapsed", width=120)
            st.form_submit_button(
                "Answer", on_click=lambda: running_lesson.answer(st.session_state[box])
            )
    elif question.kind == FIND:
        focus, name = session.focus(), session.context().known
        title = name.kinds[focus.kind][0].title.capitalize()
        number = session.values()["layer"]
        st.button(
            f"Answer: {title}, layer {number}, head {focus.head + 1}",
            on_click=running_lesson.answer,
            args=((focus.kind, focus.layer, focus.head),),
            key=f"find {step}",
        )
    elif question.kind == DO:
        st.caption("Waiting for your change.")
    elif question.kind == PAINT:
        labels, is_mask = _painted_on(now)
        paint(f"paint {step}", labels, is_mask, on_painted=running_lesson.answer)
    if message := running_lesson.memo().refused:
        show_message(message, st.warning)
        running_lesson.memo().refused = ""
    with st.container(horizontal=True, width="content", gap="small"):
        if question.hint:
            with st.popover("Hint", type="tertiary", key="lesson_hint"):
                st.markdown(question.hint)
        st.button("Show me", on_click=running_lesson.show, key="show_answer", type="tertiary")


def _painted_on(now: Running) -> tuple[list[str], bool]:
    """The labels of what is painted, and whether it is a mask."""
    is_mask = now.asked.answer.ndim == 2
    if is_mask:
        return [str(i + 1) for i in range(len(now.asked.answer))], True
    head = now.step.head(now.run)
    assert head is not None  # else nothing is painted
    return list(now.run.keys(head)), False


def _verdict(now: Running) -> str:
    """What is said of the answer, in Markdown."""
    given, question = now.given, now.asked
    assert given is not None
    is_written = question.kind in WRITTEN
    if given.shown:
        answer = _answer(now) if is_written else ""
        return answer if now.in_room else f"Shown, so it does not count. {answer}"
    mark, mine = _marked(now)
    if mark.right:
        return mark.sentence
    why = "" if mark.sentence == "No." else mark.sentence
    if not is_written:
        return why or "That is not it."
    not_this = _said(now, mine) if mine is not None else ""
    return f"{not_this}{_answer(now)} {why}"


def _marked(now: Running) -> tuple[Mark, Any]:
    """The mark, and what was answered."""
    assert now.given is not None
    try:
        return now.asked.mark(now.given.answer), now.given.answer
    except (ValueError, TypeError):  # a browser may keep anything
        return Mark(False, 0.0, "This answer cannot be read."), None


def _reveal(now: Running) -> str:
    """The text after an answer, right or wrong."""
    assert now.given is not None
    return now.asked.reveal_after(None if now.given.shown else _marked(now)[1])


def _draw_painted(now: Running) -> None:
    """The painted row beside the true one."""
    given, question = now.given, now.asked
    if given is None or question.kind != PAINT:
        return
    labels, is_mask = _painted_on(now)
    mine = None if given.shown else _marked(now)[1]
    name = f"painted {now.step.number} {now.attempt}"
    paint(name, labels, is_mask, mine, question.answer.tolist())


def _draw_again(now: Running) -> None:
    assert now.given is not None
    is_right = _marked(now)[0].right and not now.given.shown
    if not now.in_room and not is_right and running_lesson.another(now):
        st.button(
            "Ask me again",
            icon=":material/replay:",
            on_click=running_lesson.ask_again,
            key="ask_again",
            type="tertiary",
        )


def _said(now: Running, answer) -> str:
    return f"You said {_ended(_written(now, answer))} "


def _answer(now: Running) -> str:
    return f"The answer is {_ended(_written(now, now.asked.answer))}"


def _ended(text: str) -> str:
    """With a full stop, where it does not end in one."""
    return text if text.rstrip("*").endswith((".", "?", "!")) else f"{text}."


def _written(now: Running, answer) -> str:
    """An answer in words."""
    question = now.asked
    if question.kind == CHOOSE:
        return f"*{running_lesson.written(str(answer))}*"
    if question.kind == NUMBER:
        if isinstance(answer, str):
            return formats.escaped(answer)
        return percent(answer) if question.share else formatting.number(answer, 4)
    if question.kind == FIND:
        kind, layer, head = min(answer) if isinstance(answer, set | frozenset) else answer
        sites = session.context().known.kinds
        title = sites[kind][0].title if kind in sites else kind
        return f"{title}, layer {layer + 1}, head {head + 1}"
    return ""


def _draw_ways(now: Running, is_over: bool) -> None:
    """Back, Next, Leave."""
    name, before, after = now.lesson.name, *map(running_lesson.neighbour, (-1, 1))
    with st.container(horizontal=True, width="content", key="lesson_ways"):
        if before:
            st.button("Back", on_click=running_lesson.go_to, args=(name, before), key="step_back")
        if after:
            st.button(
                "Next",
                on_click=running_lesson.go_to,
                args=(name, after),
                key="step_on",
                type="primary" if not now.is_open else "secondary",
            )
        elif is_over:
            st.button(
                "Finish",
                on_click=running_lesson.leave,
                kwargs={"done": True},
                key="finish_lesson",
                type="primary",
            )
        st.button("Leave", on_click=running_lesson.leave, key="leave_lesson", type="tertiary")


def _draw_exercise(name: str | None) -> None:
    """What the lesson was about, to write oneself."""
    if not name:
        return
    st.markdown(
        f"**Write it.** Download the exercise, unpack it, open a terminal in its folder and run "
        f"`headlight check {name}.py`. Each time you save, you see your numbers beside the right "
        "ones, and what is wrong with yours."
    )
    st.download_button(
        "The exercise",
        partial(students_zip, name),
        f"{name}.zip",
        "application/zip",
        key=f"exercise {name}",
        on_click="ignore",
        icon=":material/code:",
    )


def draw_download(name: str) -> None:
    """My answers, as a file for the teacher."""
    if not running_lesson.progress().answers.get(name):
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        student = st.text_input("Your name", key=f"student {name}", max_chars=100, width=160)
        st.download_button(
            "My answers",
            partial(running_lesson.file_of_answers, running_lesson.progress(), name, student),
            f"{name}-answers.json",
            "application/json",
            key=f"answers {name}",
            on_click="ignore",
            icon=":material/download:",
        )
        if (is_in := room_acts.has_handed_in(name)) is not None:
            st.button(
                "Hand in again" if is_in else "Hand in",
                on_click=partial(_hand_in, name, student),
                key=f"hand_in {name}",
                help="Sends this file, with your name, to the room's teacher.",
            )


def _hand_in(name: str, student: str) -> None:
    """A callback."""
    file = running_lesson.file_of_answers(running_lesson.progress(), name, student)
    room_acts.hand_in(name, file)
