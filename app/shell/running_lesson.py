"""The lesson that runs in this session: its step, its question, the answers so far, and what is
veiled until the question is answered. The browser keeps the answers, see `to_browser`."""

import json
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import streamlit as st

from headlight.app.lessons.answers import (
    GivenAnswer,
    answer_of,
    read,
    seed_of,
    to_json,
    weights_of,
)
from headlight.app.lessons.lesson import SHIPPED_LESSONS, LiveLesson, Step, load_folder
from headlight.app.lessons.lesson_file import LessonError
from headlight.app.lessons.question import CHOOSE, DO, FIND, NUMBER, READ, Question, Veil
from headlight.app.lessons.sentence_run import NoQuestion, SentenceRun, names_of
from headlight.app.server import arguments
from headlight.app.shell import class_remote
from headlight.app.state import catalog, session
from headlight.app.state.cache import once
from headlight.app.state.pages import HOME, PAGES
from headlight.app.state.settings import OF_ROOMS, SETTINGS
from headlight.app.text import formats
from headlight.model.checkpoint import Checkpoint
from headlight.model.probing.run import FINAL
from headlight.model.probing.trace import CannotRead

LARGEST = 1_000_000  # characters of what a browser keeps
UNTOUCHED = ("model", "device", "projector", *OF_ROOMS, "lesson", "step_of_lesson")
DECODED_WITH = ("width", "temperature", "seed", "beginning")
ON_PAGES = (*DECODED_WITH, "at")  # settings of pages that steps set
LEARN_PAGE = "learn"
DRAWS = 6  # of a question, to find another one


@dataclass
class StudentProgress:
    """What the browser keeps. `seed`: a number drawn once for each student, from which questions
    are drawn; `answers`, `weights`: by lesson; `right`: the steps of a lesson whose first answer
    was right; `before`: the user's own settings while a lesson runs."""

    seed: int = field(default_factory=lambda: secrets.randbelow(2**31))
    answers: dict[str, list[GivenAnswer]] = field(default_factory=dict)
    weights: dict[str, dict[str, str]] = field(default_factory=dict)
    right: dict[str, list[int]] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    before: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Running:
    """The step of a lesson on a run. `question` is None, and `problem` a sentence, where this
    sentence leaves nothing to ask. `given`: the answer to this question, if there is one; `first`:
    a wrong one, after which it is asked once more."""

    step: Step
    run: SentenceRun
    question: Question | None
    given: GivenAnswer | None = None
    attempt: int = 1
    problem: str = ""
    first: GivenAnswer | None = None
    in_room: bool = False  # the room asks it
    waits: bool = False  # for a sentence of one's own; `problem` asks for it

    @property
    def key(self) -> tuple:
        """Of this question among all."""
        return self.lesson.name, self.step.number, self.attempt, self.run.name, self.run.sentence

    @property
    def lesson(self) -> LiveLesson:
        return self.step.lesson

    @property
    def asked(self) -> Question:
        """`question`, where there is one."""
        assert self.question is not None
        return self.question

    @property
    def is_open(self) -> bool:
        """Whether an answer is awaited."""
        return self.question is not None and self.step.kind != READ and self.given is None

    @property
    def row(self) -> tuple[str, int] | None:
        """The kind of attention and the row that the step is about."""
        head = self.step.head(self.run)
        if self.question is None or head is None:
            return None
        rows = [
            veil.place + (veil.what == "needed words")  # whose word the row before predicts
            for veil in self.question.veil
            if veil.place is not None and veil.what in ("row", "next tokens", "needed words")
        ]
        row = rows[0] if rows else self.question.row
        return None if row is None else (head.kind, row)

    @property
    def page(self) -> str:
        return self.step.page

    @property
    def is_elsewhere(self) -> bool:
        """Whether another model or sentence is shown than the step is about."""
        now = session.values()
        return (now["model"], now["line"]) != (self.run.name, self.run.sentence)


@dataclass(frozen=True)
class RoomQuestion:
    """The question of a step as a room asks it: the same for all, drawn from the teacher's `seed`.
    `is_open`: nothing is to give the answer away; then `answer` is what this student gave, None if
    nothing."""

    lesson: str
    step: int
    seed: int
    attempt: int
    model: str
    sentence: str
    is_open: bool
    answer: Any = None


@dataclass(slots=True)
class LessonMemo:
    """What a session remembers of its lessons."""

    running: Running | None = None  # the step of this script run
    in_room: RoomQuestion | None = None  # what the room asks
    problem: str = ""  # why the lesson cannot run
    leads_to: str = ""  # the page to which the browser is to go
    shown: int = 0  # counts the steps shown
    refused: str = ""  # why the last answer was none
    asked_again: tuple | None = None  # lesson, step, answers to it by then, and the attempt
    tries_again: tuple | None = None  # the key of a question whose first answer was wrong
    second: tuple[tuple, GivenAnswer] | None = None  # such a key and the second answer
    finished: str = ""  # the lesson that was finished last, until another page is shown
    query: list[float] | None = None  # dragged on the page Query, key, value
    runs: dict[tuple[str, str], SentenceRun] = field(default_factory=dict)  # by model and sentence
    progress: StudentProgress = field(default_factory=StudentProgress)
    has_progress: bool = False  # `progress` changed in this session: the browser is to keep it


def memo() -> LessonMemo:
    """This session's, see `memo` of session.py."""
    notes = session.memo()
    if not isinstance(notes.lesson, LessonMemo):
        notes.lesson = LessonMemo()
    return notes.lesson


# Available lessons


@once
def _loaded() -> tuple[dict[str, LiveLesson], list[LessonError]]:
    more = arguments.given().lessons
    lessons, errors = load_folder(SHIPPED_LESSONS)
    if more:
        own, wrong = load_folder(more)
        lessons, errors = [*lessons, *own], [*errors, *wrong]
    return {lesson.name: lesson for lesson in lessons}, errors


def lessons() -> dict[str, LiveLesson]:
    """The shipped lessons, then those of the folder `--lessons`, by their names."""
    return _loaded()[0]


def broken() -> list[LessonError]:
    """What is wrong with the files that are no lessons."""
    return _loaded()[1]


def _load(name: str) -> Checkpoint:
    """This session's view of a model. Raises FileNotFoundError."""
    if name not in catalog.models():
        raise FileNotFoundError(name)
    try:
        return catalog.view_for(session.memo().session, name, FINAL, "cpu").checkpoint
    except catalog.UnreadableModel as error:
        raise FileNotFoundError(name) from error


@st.cache_resource(show_spinner=False, max_entries=100)
def _fitting(name: str) -> tuple[str, str]:
    """The model and the sentence on which a lesson works. Raises LessonError. It takes seconds,
    once per process."""
    run = lessons()[name].open(_load)
    return run.name, run.sentence


def _run_of(lesson: LiveLesson) -> SentenceRun:
    return _run_on(*_fitting(lesson.name))


def _run_on(model: str, sentence: str) -> SentenceRun:
    """Its passes are those of this session; the last few are remembered."""
    runs = memo().runs
    if (model, sentence) not in runs:
        for old in list(runs)[:-2]:
            del runs[old]
        runs[model, sentence] = SentenceRun(_load(model), model, sentence)
    return runs[model, sentence]


# The step of this script run


def open_link() -> None:
    """A link that names a lesson and no more opens it on its own model and sentence. Before the
    first run's settings are made valid."""
    if session.memo().context is not None:
        return
    named = set(st.query_params) & SETTINGS.keys()
    lesson = lessons().get(st.query_params.get("lesson", ""))
    if not lesson or named - {"lesson", "step_of_lesson", "projector", *OF_ROOMS}:
        return
    setting = SETTINGS["step_of_lesson"]
    number = setting.parse(st.query_params.get_all(setting.key))
    number = number if isinstance(number, int) and setting.could_be(number) else 1
    try:
        run = _run_of(lesson)
        step = lesson.steps[min(number, len(lesson.steps)) - 1]
        wanted = _wanted(step, step.run(run, _load))
    except (LessonError, FileNotFoundError, ValueError):
        return  # the page says why
    session.open_with(**wanted)
    session.lead(step.place)


def settle() -> Running | None:
    """Finds the step that the settings name, before anything is drawn, and whether what is done by
    now answers it. None without a lesson; a lesson that cannot run leaves a sentence."""
    notes, chosen = memo(), session.values()
    notes.running, notes.problem = None, ""
    if not chosen["lesson"] or session.context().structure is None:
        return None
    lesson = lessons().get(chosen["lesson"])
    if lesson is None:
        notes.problem = f"There is no lesson “{chosen['lesson'][:60]}” here."
        return None
    try:
        running = _running(lesson, lesson.steps[_number(lesson) - 1])
        notes.running = running
        act = _act_now(running) if running.is_open and running.step.kind == DO else None
        if act and (done := running.asked.done) and done(act):
            _record(running, act)
            notes.running = _running(lesson, running.step)
    except LessonError as error:
        notes.problem = error.message
    return notes.running


def _number(lesson: LiveLesson) -> int:
    return min(session.values()["step_of_lesson"], len(lesson.steps))


def _running(lesson: LiveLesson, step: Step) -> Running:
    asked = memo().in_room
    if asked and (asked.lesson, asked.step) == (lesson.name, step.number):
        with suppress(NoQuestion, CannotRead, FileNotFoundError):  # else: this session's own
            return _running_in_room(step, asked)
    run = step.run(_run_of(lesson), _load)
    line = session.values()["line"]
    if step.asks_own_sentence and line and session.values()["model"] == run.name:
        run = _run_on(run.name, line)
    if step.asks_own_sentence and run.sentence == _run_of(lesson).sentence:
        first = step.source.text.partition(".")[0] + "."
        return Running(step, run, None, problem=step.filled(first, run), waits=True)
    answers = [a for a in progress().answers.get(lesson.name, ()) if a.step == step.number]
    given = [a for a in answers if (a.model, a.sentence) == (run.name, run.sentence)]
    asked_for = memo().asked_again
    again = asked_for and asked_for[:3] == (lesson.name, step.number, len(answers))
    attempt = given[-1].attempt if given else len(answers) + 1
    attempt = asked_for[3] if asked_for and again else attempt
    seed = seed_of(progress().seed, lesson.name, step.number, attempt)
    try:
        question = step.question(run, seed, written)
    except (NoQuestion, CannotRead) as error:
        return Running(step, run, None, problem=str(error))
    now = Running(step, run, question, given[-1] if given and not again else None, attempt)
    if now.given and memo().tries_again == now.key:
        return replace(now, given=None, first=now.given)
    second = memo().second
    if now.given and second and second[0] == now.key:
        return replace(now, given=second[1])
    return now


def _running_in_room(step: Step, asked: RoomQuestion) -> Running:
    run = _run_on(asked.model, asked.sentence)
    seed = seed_of(asked.seed, asked.lesson, asked.step, asked.attempt)
    question = step.question(run, seed, written)
    given = None
    if not asked.is_open:
        is_shown = asked.answer is None
        value = asked.answer
        if is_shown:
            value = min(question.answer) if question.kind == FIND else question.answer
        value = tuple(value) if question.kind == FIND else value
        given = answer_of(step, run, asked.seed, _plain(value), asked.attempt, is_shown)
    return Running(step, run, question, given, asked.attempt, in_room=True)


def written(text: str) -> str:
    """What is filled into a lesson's text, in Markdown; punctuation alone is quoted, or it would
    be read as that of the sentence."""
    return formats.escaped(text if re.search(r"[\w<]", text) else f"“{text}”")


def running() -> Running | None:
    """The step of this script run."""
    return memo().running


def shown_step() -> Running:
    """`running`, where a step is shown."""
    now = running()
    assert now is not None
    return now


def veils() -> tuple[Veil, ...]:
    """What is covered now, so that an open question gives nothing away."""
    now = running()
    if now is None:
        return class_remote.veils()
    return now.asked.veil if now.is_open else ()


def veils_ahead() -> tuple[Veil, ...]:
    """Rows that a later step asks about and that this step would give away."""
    now = running()
    if now is None or now.is_elsewhere:
        return ()
    found = []
    for step in now.lesson.steps[now.step.number :]:
        is_asked = step.source.keys.get("type") in ("row", "shares") and not step.asks_own_sentence
        if is_asked and not _answers(now.lesson.name, step.number) and step.concerns(now.run):
            with suppress(NoQuestion, CannotRead, LessonError):
                seed = seed_of(progress().seed, now.lesson.name, step.number, 1)
                found += [veil for veil in step.question(now.run, seed).veil if veil.what == "row"]
    return tuple(found)


def covers(page: str) -> bool:
    """Whether a page as a whole would give the answer away. The stage covers the part in question,
    as long as it shows the run of the step: another text or another mask would bring the same
    weights to another place."""
    hidden = {veil.what for veil in veils()} if running() else ()
    if not hidden or page == LEARN_PAGE:
        return False
    if page != HOME or "decoding" in hidden:
        return True
    return any(session.values().get(key) != value for key, value in _as_in_the_step().items())


def choices() -> dict[str, list[str | None]]:
    """Where the words of a text are what one may answer: its title → for each token the choice, or
    None."""
    now = running()
    if not now or not now.is_open or now.in_room or now.is_elsewhere or now.asked.kind != CHOOSE:
        return {}
    base, offered, found = now.run.base, now.asked.choices, {}
    for name, side in base.sides.items():
        names = names_of(base.texts[name].tokens)
        if {*offered} <= {*names}:
            found[side.title] = [each if each in offered else None for each in names]
    return found


def pointed_row() -> tuple[str, int] | None:
    """The kind of attention and the row that the step is about, if its run is shown."""
    now = running()
    return now.row if now and not now.is_elsewhere else None


def _as_in_the_step() -> dict[str, Any]:
    """The settings of the step that a run depends on; of the sources the line alone."""
    now = shown_step()
    return {
        key: value
        for key, value in _wanted(now.step, now.run).items()
        if SETTINGS[key].run and not SETTINGS[key].pages and key != "source"
    }


def _act(values: Mapping) -> dict[str, Any]:
    """What is done, as a `do` step asks: the settings that a run depends on or a page decodes
    with."""
    keys = "changes", "pad_to", *session.MASKS, *DECODED_WITH
    done = {key: values[key] for key in keys if key in values and values[key] != _default(key)}
    return done | {"line": values["line"]}


def _act_now(running: Running) -> dict[str, Any] | None:
    """What has been done since the step began; None if nothing has."""
    act = _act(session.values())
    if query := memo().query:
        act["query"] = query
    return None if act == _act(_wanted(running.step, running.run)) else act


def hear_query(query: list[float]) -> None:
    """The query was dragged on the page Query, key, value. A callback."""
    memo().query = query


def awaits_act() -> bool:
    """Whether a step waits for something to be done."""
    now = running()
    return bool(now and now.is_open and now.step.kind == DO)


def _default(key: str) -> Any:
    return SETTINGS[key].limits(session.context()).default


# From step to step; callbacks


def start(name: str) -> None:
    """Begin a lesson, or go on where it was left. A callback."""
    if name not in lessons():  # from a browser
        return
    state, memo().finished = progress(), ""
    if not session.values()["lesson"]:
        state.before = {key: SETTINGS[key].default for key in ON_PAGES} | {
            key: value for key, value in session.values().items() if SETTINGS[key].address
        }
    go_to(name, next_step(name) or 1)


def next_step(name: str) -> int:
    """The step after the last one answered; 0 of a lesson that is finished, or not begun."""
    answered = [] if name in progress().done else _steps_answered(name)
    return min(max(answered) + 1, len(lessons()[name].steps)) if answered else 0


def score(name: str) -> tuple[int, int]:
    """How many questions of a lesson were answered right at the first answer, and how many there
    were."""
    return len(progress().right.get(name, ())), len(set(_steps_answered(name)))


def next_lesson() -> str:
    """The first that is not finished; the first of all where all are; "" where there is none."""
    names = [*lessons()]
    return next((name for name in names if name not in progress().done), (names or [""])[0])


def _steps_answered(name: str) -> list[int]:
    return [given.step for given in progress().answers.get(name, ())]


def go_to(name: str, number: int) -> None:
    """Show a step as it is meant to be seen. A callback."""
    lesson, notes = lessons()[name], memo()
    try:
        run = _run_of(lesson)
    except LessonError as error:
        session.choose(lesson=name, step_of_lesson=number)
        notes.problem = error.message
        return
    number = _shown_from(lesson, run, number) or number
    step = lesson.steps[number - 1]
    show_view(step, step.run(run, _load))
    session.choose(lesson=name, step_of_lesson=number)
    notes.leads_to = step.page
    notes.shown += 1
    touch()


def show_view(step: Step, run: SentenceRun) -> None:
    """Set all settings as the step asks. A callback."""
    wanted = _wanted(step, run)
    session.memo().text_model = wanted["model"]  # the sentence comes with the model
    session.memo().origin = None
    memo().query = None
    session.lead(step.place)
    session.choose(**wanted)


def _wanted(step: Step, run: SentenceRun) -> dict[str, Any]:
    """The view of a step, and all other settings of a run and of its display as they are by
    default."""
    plain = {
        key: setting.default
        for key, setting in SETTINGS.items()
        if not setting.pages and not setting.opens and key not in UNTOUCHED
    }
    plain |= {key: SETTINGS[key].default for key in ON_PAGES}
    view = step.view(run)
    view.pop("page")
    return plain | {"step": FINAL, "source": run.sentence} | view


def neighbour(by: int) -> int | None:
    """The number of the next step, or with −1 of the one before, that this model has something to
    say about; None beyond the ends."""
    now = shown_step()
    return _shown_from(now.lesson, _run_of(now.lesson), now.step.number + by, by)


def _shown_from(lesson: LiveLesson, run: SentenceRun, number: int, by: int = 1) -> int | None:
    """The first step from a number on, or with −1 back, that is not left out."""
    while 1 <= number <= len(lesson.steps):
        step = lesson.steps[number - 1]
        if step.concerns(step.run(run, _load)):
            return number
        number += by
    return None


def leave(done: bool = False) -> None:
    """End the lesson; the user's own settings return. A callback."""
    state, name = progress(), session.values()["lesson"]
    if done and name not in state.done:
        state.done.append(name)
    memo().finished = name if done else ""
    before = {"lesson": "", "step_of_lesson": 1} | {
        key: value for key, value in state.before.items() if key not in ("lesson", "step_of_lesson")
    }
    notes = session.memo()
    notes.text_model = before.get("model", notes.text_model)
    notes.origin = None
    memo().leads_to = ""
    session.choose(**before)
    state.before = {}
    touch()


def close() -> None:
    """What is said of the lesson that was finished goes. A callback."""
    memo().finished = ""


# Answers; callbacks


def answer(value: Any) -> None:
    _answer(value, shown=False)


def show() -> None:
    """Show me: the answer, which then does not count."""
    now = shown_step()
    if now.first is not None:
        memo().tries_again = None
        return
    right = now.asked.answer
    if now.step.kind == FIND:
        right = min(right)
    _answer(right, shown=True)
    if now.step.kind == DO:  # see it in the picture
        session.choose(**{key: value for key, value in right.items() if key in SETTINGS})
        if "line" in right:
            session.choose(source=right["line"])


def ask_again() -> None:
    """Another question of the same step, which does not count."""
    now = shown_step()
    name, number = now.lesson.name, now.step.number
    memo().asked_again = name, number, len(_answers(name, number)), another(now)


def another(now: Running) -> int | None:
    """The next attempt that asks another question of the step; None where it has no other."""
    name, number = now.lesson.name, now.step.number

    def asked(attempt: int) -> tuple:
        question = now.step.question(now.run, seed_of(progress().seed, name, number, attempt))
        return question.text, str(question.answer)

    def find() -> int | None:
        here = asked(now.attempt)
        return next((n for n in range(first, first + DRAWS) if asked(n) != here), None)

    first = len(_answers(name, number)) + 1
    return now.run.once(("another", progress().seed, name, number, now.attempt, first), find)


def _answers(name: str, number: int) -> list[GivenAnswer]:
    return [a for a in progress().answers.get(name, ()) if a.step == number]


def _answer(value: Any, shown: bool) -> None:
    now, notes = running(), memo()
    notes.refused = ""
    if now is None or not now.is_open or now.in_room:
        return
    try:
        mark = now.asked.mark(value)
    except ValueError as error:
        notes.refused = str(error)
        return
    if now.first is not None:  # the first one counts
        notes.tries_again = None
        notes.second = now.key, replace(now.first, answer=_plain(value))
        return
    _record(now, value, shown, mark.right)
    question = now.asked
    leaves_some = question.kind in (NUMBER, FIND) or len(question.choices) > 2
    if leaves_some and not mark.right and not shown:
        notes.tries_again = now.key


def _record(now: Running, value: Any, shown: bool = False, right: bool = True) -> None:
    state, name = progress(), now.lesson.name
    if right and not shown and not _answers(name, now.step.number):
        state.right.setdefault(name, []).append(now.step.number)
    plain = _plain(value)
    given = answer_of(now.step, now.run, state.seed, plain, now.attempt, shown)
    state.answers.setdefault(name, []).append(given)
    state.weights.setdefault(name, {})[now.run.name] = weights_of(now.run)
    memo().asked_again = None
    touch()


def _plain(value: Any) -> Any:
    """An answer as JSON has it."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def file_of_answers(state: StudentProgress, name: str, student: str) -> str:
    """The answers to a lesson, which `headlight lessons report` marks. It is called outside of a
    script run, where a session cannot be asked."""
    weights, answers = state.weights.get(name, {}), state.answers.get(name, ())
    return to_json(student, state.seed, lessons()[name], weights, answers)


# What the browser keeps


def progress() -> StudentProgress:
    return memo().progress


def touch() -> None:
    """The browser is to keep what has changed."""
    memo().has_progress = True


def to_browser() -> str | None:
    """The progress as text; None while nothing has changed in this session."""
    if not memo().has_progress:
        return None
    state = vars(progress()) | {
        "answers": {name: [vars(a) for a in some] for name, some in progress().answers.items()}
    }
    return json.dumps(state)


def from_browser(text: str) -> None:
    """Takes up what a browser has kept; what cannot be read is nothing. A callback."""
    if memo().has_progress or len(text) > LARGEST:
        return
    try:
        state = _read(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return
    memo().progress = state


def _read(state: Mapping) -> StudentProgress:
    """Raises ValueError and its like for what `to_browser` has not written."""
    answers, weights = {}, {}
    for name, lesson in lessons().items():
        if given := [GivenAnswer(**answer) for answer in state["answers"].get(name, ())]:
            content = read(to_json("", state["seed"], lesson, state["weights"][name], given))
            answers[name], weights[name] = given, content["weights"]
    before = {
        key: value
        for key, value in state["before"].items()
        if key in SETTINGS and SETTINGS[key].address and SETTINGS[key].could_be(value)
    }
    done = [name for name in lessons() if name in state["done"]]
    counted = state.get("right", {})  # unknown to what was kept before there was such a count
    right = {}
    for name, some in answers.items():
        steps = {given.step for given in some} & {*counted.get(name, ())}
        if steps:
            right[name] = sorted(steps)
    return StudentProgress(int(state["seed"]), answers, weights, right, done, before)


def page_of_step() -> str | None:
    """The page on which the step stands."""
    now = running()
    return now.page if now and now.page in PAGES else None
