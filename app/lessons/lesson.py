"""A lesson that runs: its steps with their views and questions, on a model and a sentence."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from headlight.app.lessons.lesson_file import (
    LessonError,
    LessonText,
    StepText,
    names_in,
    read_lesson,
)
from headlight.app.lessons.question import DO, FIND, READ, Draw, Question
from headlight.app.lessons.question_types import TYPES
from headlight.app.lessons.question_types.attention import crossings
from headlight.app.lessons.sentence_run import NamedHead, NoQuestion, SentenceRun
from headlight.app.state.options import FORMER_VIEWS, PLACES
from headlight.model.checkpoint import Checkpoint
from headlight.model.decoding.generate import Beam
from headlight.model.messages import LONGEST_MESSAGE, reason, short
from headlight.model.pretrained.weights import CannotLoad

SHIPPED_LESSONS = Path(__file__).resolve().parent / "en"
FEWEST_WORDS_CROSSED, LONGEST_PARTING = 2, 20
Load = Callable[[str], Checkpoint]
PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


class CannotFill(ValueError):
    """A placeholder that stands where it may not, or that nothing fills."""

    def __init__(self, name: str, part: str, gives_away: bool):
        why = "would give the answer away" if gives_away else "is never filled"
        super().__init__(f"{{{name}}} in the {part} {why}.")


@dataclass(frozen=True)
class Step:
    """One step of a lesson. `number` counts from 1."""

    lesson: "LiveLesson"
    number: int
    source: StepText

    @property
    def kind(self) -> str:
        return self.source.kind

    @property
    def title(self) -> str:
        return self.source.title

    @property
    def line(self) -> int:
        return self.source.line

    @property
    def asks_own_sentence(self) -> bool:
        return "own" in self.source.keys

    @property
    def page(self) -> str:
        """The page on which the step stands, whatever the sentence."""
        return self._view["page"]

    @property
    def place(self) -> dict[str, str]:
        """Where on the stage the step stands, as PLACES names it: its head, unless it says more."""
        return {"depth": "head"} | {k: v for k, v in self._view.items() if k in PLACES}

    @property
    def _view(self) -> dict[str, Any]:
        view = {**self.lesson.source.front.get("view", {}), **self.source.keys.get("view", {})}
        return {**view, **FORMER_VIEWS.get(str(view.get("page")), {})}

    @property
    def labels_read(self) -> bool:
        """Whether rows are labelled by the word just read, whichever word a head follows."""
        return self._view.get("rows") == "read"

    def run(self, run: SentenceRun, load: Load) -> SentenceRun:
        """The run that the step is about: the lesson's, or that of a model of its own."""
        view = self._view
        model, sentence = view.get("model", run.name), view.get("sentence", run.sentence)
        if (model, sentence) == (run.name, run.sentence):
            return run
        return run.once(("run", model, sentence), lambda: SentenceRun(load(model), model, sentence))

    def concerns(self, run: SentenceRun) -> bool:
        """Whether the model has what the step is about; else it is left out."""
        return not missing_needs(run, names_in(self.source.keys.get("needs")))

    def head(self, run: SentenceRun, rng: Random | None = None) -> NamedHead | None:
        """The head that the step is about."""
        view = self._view
        name = self.source.keys.get("head", view.get("head"))
        head = run.head(name, view.get("kind", ""), rng) if name else None
        # Rows that are labelled by the word read are found by it, too.
        return replace(head, shift=0) if head and self.labels_read else head

    def view(self, run: SentenceRun) -> dict[str, Any]:
        """Settings by their key, as in a permalink, and `page`. Raises NoQuestion if the model has
        no such head."""
        others = "head", "rows", "sentence", *PLACES
        settings = {k: v for k, v in self._view.items() if k not in others}
        settings |= {"model": run.name, "line": run.sentence}
        if "head" in self._view:
            head = self.head(run)
            if head is None:
                raise NoQuestion(f"This model has no head called “{self._view['head']}”.")
            site = run.base.kinds[head.kind][head.layer]
            settings |= {"kind": head.kind, "layer": site.layer + 1, "head": head.head + 1}
        if self.kind == FIND:
            kind, layer, head = self._unfitting(run)
            layer = run.base.kinds[kind][layer].layer
            settings |= {"kind": kind, "layer": layer + 1, "head": head + 1}
        return settings

    def _unfitting(self, run: SentenceRun) -> tuple[str, int, int]:
        """The first head that is not to be found, so that opening the step gives nothing away."""
        fitting, own = self._draw(run, 0).answer, self.source.keys.get("view", {})
        return next(
            (kind, layer, head)
            for kind, weights in run.base.attention.items()
            for layer, head in np.ndindex(weights.shape[:2])
            if (kind, layer, head) not in fitting
            and own.get("kind", kind) == kind
            and own.get("layer", layer + 1) == layer + 1
        )

    def question(
        self, run: SentenceRun, seed: int = 0, written: Callable[[str], str] = str
    ) -> Question:
        """The question, drawn from a seed, with its texts filled; of a step to read without an
        answer. `written` makes what is filled in, which may hold typed tokens, fit for the screen.
        Equal arguments give equal questions. Raises NoQuestion, with a sentence, if this
        run has nothing to ask about, and CannotFill."""
        return self._filled(self._draw(run, seed), run, written)

    def _draw(self, run: SentenceRun, seed: int) -> Question:
        drawing = self._drawing(run, seed)
        return self._type.draw(drawing)

    @property
    def _type(self):
        return TYPES[{READ: "read", DO: "act"}.get(self.kind) or self.source.keys["type"]]

    def _drawing(self, run: SentenceRun, seed: int) -> Draw:
        rng = Random(f"{self.lesson.name}/{self.number}/{seed}")
        keys = dict(self.source.keys)
        if self.kind == FIND:
            keys.setdefault("ask", "find")
            keys["view"] = {k: v for k, v in keys.get("view", {}).items() if k in ("kind", "layer")}
        rows, columns = self._used(run) if not self.asks_own_sentence else ((), ())
        return Draw(
            keys,
            run,
            rng,
            self.head(run, rng),
            frozenset(rows),
            frozenset(columns),
            self.lesson.source.front.get("second sentence", ""),
        )

    def _used(self, run: SentenceRun) -> tuple[set[int], set[int]]:
        """Rows and columns that earlier steps were about."""
        keys = self.source.keys
        if "new" not in str(keys.get("row")) and "column" not in keys:
            return set(), set()
        return run.once(("used", self.lesson.name, self.number), lambda: self._find_used(run))

    def _find_used(self, run: SentenceRun) -> tuple[set[int], set[int]]:
        rows, columns = set(), set()
        for step in self.lesson.steps[: self.number - 1]:
            if "row" not in step.source.keys or "model" in step.source.keys.get("view", {}):
                continue
            drawing = step._drawing(run, 0)
            try:
                step._type.draw(drawing)
            except NoQuestion:
                continue
            rows.update(drawing.chosen)
            if drawing.head is not None:
                columns.update(drawing.rows().key(row) for row in drawing.chosen)
        return rows, columns

    def filled(self, text: str, run: SentenceRun) -> str:
        """A text that needs no question: with what is known of every run."""
        return PLACEHOLDER.sub(lambda name: run.common.get(name[1], name[0]), text)

    def _filled(
        self, question: Question, run: SentenceRun, written: Callable[[str], str]
    ) -> Question:
        given = {**run.common, **question.given}
        everything = {**given, **question.shown}

        def fill(text: str, part: str, values: Mapping[str, str], written=written) -> str:
            def value(match):
                name = match[1]
                if name == "distance" and part == "reveal":
                    return match[0]  # depends on what is painted
                if name not in values:
                    raise CannotFill(name, part, name in everything)
                return written(str(values[name]))

            return PLACEHOLDER.sub(value, text)

        if self.source.keys.get("type") == "statement":  # its choices are texts of the file
            question = replace(
                question,
                answer=fill(question.answer, "options", given, str),
                choices=tuple(fill(choice, "options", given, str) for choice in question.choices),
                misconceptions=tuple(
                    replace(
                        m,
                        name=fill(m.name, "options", given, str),
                        answer=fill(m.answer, "options", given, str),
                    )
                    for m in question.misconceptions
                ),
            )
        parts = self.source.parts
        after = [parts[name] for name in ("Reveal",) if name in parts]
        return replace(
            question,
            text=fill(self.source.text, "text", given),
            hint=fill(parts.get("Hint", ""), "hint", given),
            reveal=fill("\n\n".join(after), "reveal", everything),
            misconceptions=tuple(
                replace(m, sentence=fill(m.sentence, "reveal", everything))
                for m in question.misconceptions
            ),
        )


@dataclass(frozen=True)
class LiveLesson:
    """A lesson of a file."""

    source: LessonText

    @property
    def name(self) -> str:
        return short(self.source.file.stem, LONGEST_MESSAGE)  # of any bytes on the disk

    @property
    def title(self) -> str:
        return self.source.front["title"]

    @property
    def question(self) -> str:
        """What it asks, in a line of Markdown; its title where the file has no question."""
        return self.source.front.get("question", self.title)

    @property
    def minutes(self) -> int:
        return self.source.front["minutes"]

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(Step(self, n, step) for n, step in enumerate(self.source.steps, 1))

    @property
    def remember(self) -> str:
        return self.source.steps[-1].parts.get("Remember", "")

    @property
    def limit(self) -> str:
        return self.source.steps[-1].parts.get("Limit", "")

    def runs(self) -> list[tuple[str, str]]:
        """(model, sentence), in the order in which they are tried."""
        sentences = self.source.front["sentence"]
        return [
            (model, sentence)
            for model in names_in(self.source.front["model"])
            for sentence in names_in(sentences[model] if isinstance(sentences, dict) else sentences)
        ]

    def open(self, load: Load) -> SentenceRun:
        """The first model and sentence on which every step works. Raises LessonError if there is
        none."""
        reason = LessonError(self.source.file, 1, "This lesson's models are all missing.")
        for model, sentence in self.runs():
            try:
                run = SentenceRun(load(model), model, sentence)
            except (FileNotFoundError, CannotLoad):
                continue
            problem = self.problem(run, load)
            if problem is None:
                return run
            reason = problem
        raise LessonError(
            reason.file, reason.line, f"None of the sentences works. {reason.message}"
        )

    def problem(self, run: SentenceRun, load: Load) -> LessonError | None:
        """What is wrong with the lesson on this run: the first step that does not work."""

        def error(line, message):
            return LessonError(self.source.file, line, f"On “{run.sentence}”: {message}")

        try:
            if missing := missing_needs(run, names_in(self.source.front.get("needs"))):
                return error(1, f"{run.name} lacks: {', '.join(missing)}.")
        except ValueError as problem:
            return error(1, str(problem))
        for step in self.steps:
            try:
                of_step = step.run(run, load)
                if step.concerns(of_step):
                    step.view(of_step)
                    question = step.question(of_step)
                    done = question.done if step.kind == DO else None
                    if done and done({}):
                        return error(
                            step.line, "The condition is met before the student does anything."
                        )
                    if done and not done(question.answer):
                        return error(step.line, "Following the hint does not meet the condition.")
            except (NoQuestion, CannotFill, FileNotFoundError, CannotLoad, ValueError) as problem:
                return error(step.line, str(problem))
        return None


def missing_needs(run: SentenceRun, needs: list[str]) -> list[str]:
    """Those of the needs of a lesson or a step that the run does not meet."""
    return [need for need in needs if not _meets(run, need)]


def _meets(run: SentenceRun, need: str) -> bool:
    if need == "two lines cross":
        crossed = sorted(crossings(run.links), reverse=True) if run.writes else []
        enough = len(crossed) > 1 and crossed[0] >= FEWEST_WORDS_CROSSED
        return enough and crossed[0] > crossed[1]
    if need == "greedy and beam search differ":
        if not run.writes or run.parting() is None:
            return False
        greedy, beam = run.generation(), run.generation(Beam(4))
        better = beam.score > greedy.score + math.log(1.1)
        return better and greedy.score > math.log(0.01) and len(greedy.path) < LONGEST_PARTING
    return run.head(need.removeprefix("a head that ")) is not None


def load_lesson(file: Path) -> LiveLesson:
    """Raises LessonError."""
    return LiveLesson(read_lesson(file))


def load_folder(folder: Path = SHIPPED_LESSONS) -> tuple[list[LiveLesson], list[LessonError]]:
    """The lessons of a folder in the order of their names, and what is wrong with the others."""
    lessons, errors = [], []
    try:
        files = lesson_files(folder)
    except LessonError as error:
        return lessons, [error]
    for file in files:
        try:
            lessons.append(load_lesson(file))
        except LessonError as error:
            errors.append(error)
    return lessons, errors


def lesson_files(folder: Path) -> list[Path]:
    """What may be lessons in a folder, by name. Raises LessonError if there is no such folder."""
    try:
        return sorted(file for file in folder.iterdir() if file.match("*.md"))
    except OSError as error:
        raise LessonError(folder, 1, f"The folder cannot be read: {reason(error)}.") from None
