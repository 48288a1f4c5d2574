"""The file of a student's answers, and marking it again. What a file claims is not believed: each
question is drawn again from its seed, and each answer marked anew."""

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from headlight.app.lessons.lesson import CannotFill, LiveLesson, Load, Step
from headlight.app.lessons.question import READ, Mark, Question
from headlight.app.lessons.sentence_run import NoQuestion, SentenceRun
from headlight.model.checkpoint import parameters_sha256
from headlight.model.files import read_within
from headlight.model.messages import LONGEST_MESSAGE, reason, short

FORMAT, VERSION = "headlight answers", 1
LARGEST, MOST_ANSWERS, LONGEST_NAME, LONGEST_TEXT = 1_000_000, 1_000, 100, 1_000
KEYS = {"format", "version", "student", "seed", "lesson", "weights", "answers", "digest"}
ANSWER_KEYS = {"step", "attempt", "model", "sentence", "asked", "answer", "shown"}


class CannotCount(ValueError):
    """A file of answers of which nothing counts, with a sentence why."""


@dataclass(frozen=True)
class GivenAnswer:
    """An answer to one step. `shown`: Show me was pressed, so it does not count."""

    step: int
    attempt: int
    model: str
    sentence: str
    asked: str
    answer: Any
    shown: bool = False


@dataclass(frozen=True)
class Grade:
    """What a file comes to. `answered`: steps with an answer that counts; of several attempts the
    first counts."""

    student: str
    lesson: str
    asked: int
    answered: int = 0
    right: int = 0
    score: float = 0.0
    misconceptions: tuple[str, ...] = field(default=())


def seed_of(session: int, lesson: str, step: int, attempt: int = 1) -> int:
    """The seed of a question: of `session`, a number drawn once for each student."""
    text = f"{session}/{lesson}/{step}/{attempt}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])


def asked(question: Question) -> str:
    """A short digest of a question as the student saw it."""
    text = json.dumps([question.kind, question.text, sorted(question.choices)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def answer_of(
    step: Step, run: SentenceRun, session: int, answer: Any, attempt: int = 1, shown: bool = False
) -> GivenAnswer:
    """An answer as the file keeps it."""
    question = step.question(run, seed_of(session, step.lesson.name, step.number, attempt))
    plain = answer.tolist() if isinstance(answer, np.ndarray) else answer
    return GivenAnswer(step.number, attempt, run.name, run.sentence, asked(question), plain, shown)


def weights_of(run: SentenceRun) -> str:
    """Which weights answered: the first digits of their SHA-256."""
    return run.once("weights", lambda: parameters_sha256(run.checkpoint.model)[:16])


def to_json(
    student: str,
    session: int,
    lesson: LiveLesson,
    weights: Mapping[str, str],
    answers: Iterable[GivenAnswer],
) -> str:
    """The file of answers. `weights`: model → `weights_of`."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "student": student,
        "seed": session,
        "lesson": lesson.name,
        "weights": dict(weights),
        "answers": [vars(answer) for answer in answers],
    }
    return json.dumps(content | {"digest": digest(content)}, ensure_ascii=False, indent=1)


def digest(content: Mapping) -> str:
    """Shows that a file was changed by accident or by a careless hand; it is no signature."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def read(text: str) -> dict:
    """The content of a file of answers. Raises CannotCount."""
    if len(text) > LARGEST:
        raise CannotCount("This file is too large for an answer file.")
    try:
        content = json.loads(text, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        if '"headlight answers"' in text[:200]:
            raise CannotCount("The file is cut off or damaged.") from None
        raise CannotCount("This is not an answer file.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CannotCount("This is not an answer file.")
    if content.get("version") != VERSION:
        raise CannotCount("These answers come from another version of Headlight.")
    if set(content) != KEYS or not _has_types(content):
        raise CannotCount("The file was edited: Headlight does not write these parts.")
    try:
        fits = content["digest"] == digest(content)
    except RecursionError:
        fits = False
    if not fits:
        raise CannotCount("The file was edited: its digest does not match.")
    return content


def _has_types(content: Mapping) -> bool:
    answers = content["answers"]
    return (
        isinstance(content["student"], str)
        and len(content["student"]) <= LONGEST_NAME
        and type(content["seed"]) is int
        and isinstance(content["lesson"], str)
        and isinstance(content["weights"], dict)
        and isinstance(answers, list)
        and len(answers) <= MOST_ANSWERS
        and all(isinstance(answer, dict) and set(answer) == ANSWER_KEYS for answer in answers)
        and all(
            type(answer["step"]) is int
            and type(answer["attempt"]) is int
            and type(answer["shown"]) is bool
            and all(
                isinstance(answer[key], str) and len(answer[key]) <= LONGEST_TEXT
                for key in ("model", "sentence", "asked")
            )
            for answer in answers
        )
    )


class Marker:
    """Marks files of answers to some lessons. `load` gives a model by its name."""

    def __init__(self, lessons: Iterable[LiveLesson], load: Load):
        self.lessons, self.load = {lesson.name: lesson for lesson in lessons}, load
        self._runs: dict[tuple[str, str], SentenceRun] = {}

    def grade(self, text: str) -> Grade:
        """Raises CannotCount."""
        content = read(text)
        lesson = self.lessons.get(content["lesson"])
        if lesson is None:
            raise CannotCount(f"There is no lesson “{short(content['lesson'])}” here.")
        first: dict[int, Mark | None] = {}
        for raw in content["answers"]:
            answer = GivenAnswer(**raw)
            mark = self._mark(lesson, content, answer)
            if answer.attempt == 1 and answer.step in first:
                raise CannotCount(f"Step {answer.step} has two answers given as first attempts.")
            if answer.attempt == 1 and not answer.shown:
                first[answer.step] = mark
            elif answer.attempt == 1:
                first[answer.step] = None
        marks = [mark for mark in first.values() if mark is not None]
        return Grade(
            content["student"],
            lesson.name,
            sum(step.kind != READ for step in lesson.steps),
            len(marks),
            sum(mark.right for mark in marks),
            round(sum(mark.score for mark in marks), 2),
            tuple(mark.misconception for mark in marks if mark.misconception),
        )

    def _mark(self, lesson: LiveLesson, content: Mapping, answer: GivenAnswer):
        if not 1 <= answer.step <= len(lesson.steps) or answer.attempt < 1:
            raise CannotCount(f"The lesson has no step {answer.step}.")
        step = lesson.steps[answer.step - 1]
        if step.kind == READ:
            raise CannotCount(f"Step {answer.step} does not ask a question.")
        run = self._run(lesson, step, answer)
        if content["weights"].get(answer.model) != weights_of(run):
            raise CannotCount(f"Step {answer.step} was answered on another version of {run.name}.")
        seed = seed_of(content["seed"], lesson.name, answer.step, answer.attempt)
        try:
            question = step.question(run, seed)
        except (NoQuestion, CannotFill, ValueError) as error:
            raise CannotCount(f"Step {answer.step} cannot be asked again: {error}") from None
        if asked(question) != answer.asked:
            raise CannotCount(
                f"Step {answer.step} was asked with another seed or another sentence."
            )
        try:
            return question.mark(answer.answer)
        # The answer may be of any type and shape.
        except Exception as error:
            raise CannotCount(f"Step {answer.step} has no valid answer: {reason(error)}.") from None

    def _run(self, lesson: LiveLesson, step: Step, answer: GivenAnswer) -> SentenceRun:
        key = answer.model, answer.sentence
        if key in self._runs:
            return self._runs[key]
        of_lesson = set(lesson.runs())
        view = step.source.keys.get("view", {})
        of_lesson |= {(view.get("model"), view.get("sentence"))}
        models = {model for model, _ in of_lesson}
        if answer.model not in models:
            raise CannotCount(f"Step {answer.step} is about another model.")
        if key not in of_lesson and not step.asks_own_sentence:
            raise CannotCount(f"Step {answer.step} is about another sentence.")
        try:
            run = SentenceRun(self.load(answer.model), *key)
            run.trace()  # raises what the sentence raises
        except (ValueError, OSError) as error:
            raise CannotCount(f"Step {answer.step} cannot be asked again: {error}") from None
        return self._runs.setdefault(key, run)


COLUMNS = (
    "file", "student", "lesson", "asked", "answered", "right", "score", "misconceptions", "problem",
)  # fmt: skip


def report(files: Sequence[Path], marker: Marker, out: TextIO) -> int:
    """Writes a table of grades, one row per file; returns how many files count."""
    table, counted, seen = csv.writer(out), 0, {}
    table.writerow(COLUMNS)
    for file in files:
        try:
            content = read_within(file, LARGEST)
            if (known := seen.setdefault(hashlib.sha256(content).digest(), file)) is not file:
                raise CannotCount(f"This is the same file as {known.name}.")
            grade = marker.grade(content.decode("utf-8"))
        except UnicodeDecodeError:
            problem = "This is not an answer file."
        except OSError as error:
            problem = f"The file cannot be read: {reason(error)}."
        except ValueError as error:
            problem = str(error)
        else:
            counted += 1
            numbers = grade.asked, grade.answered, grade.right, grade.score
            names = "; ".join(grade.misconceptions)
            table.writerow(
                [plain(file.name), plain(grade.student), plain(grade.lesson), *numbers, names, ""]
            )
            continue
        table.writerow([plain(file.name), *[""] * 7, plain(problem)])
    return counted


def plain(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    text = short(text, LONGEST_MESSAGE)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
