"""What a question is, and how an answer is marked."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar

import numpy as np

from headlight.app.lessons.sentence_run import LIMITS, HeadRows, NamedHead, NoQuestion, SentenceRun
from headlight.model.rounding import percent

CHOOSE, NUMBER, PAINT, DO, FIND, READ = "choose", "number", "paint", "do", "find", "read"
KINDS = (READ, CHOOSE, NUMBER, PAINT, DO, FIND)
VERY_CLOSE, MAIN_PART = 0.8, 0.5  # agreement of a painted row, from 0 to 1
LONGEST_NUMBER = 40  # characters


@dataclass(frozen=True)
class Veil:
    """Something to hide until the question is answered, on every page, in exports too, with
    everything it could be computed from by subtraction.

    what    row, column, scores, next tokens, decoding, change, masks, shapes, names, needed words,
            lines
    kind, layer, head, place   where: as in a trace's arrays; None is everywhere
    """

    what: str
    kind: str | None = None
    layer: int | None = None
    head: int | None = None
    place: int | None = None


@dataclass(frozen=True)
class Misconception:
    """A common mistake: its name, the answer that one gets under it, and a sentence that says
    so."""

    name: str
    answer: Any
    sentence: str


@dataclass(frozen=True)
class Mark:
    """right; score from 0 to 1; the sentence that answers the student; the misconception, or ""."""

    right: bool
    score: float
    sentence: str
    misconception: str = ""


@dataclass(frozen=True)
class Question:
    """A drawn question with its answer.

    kind       choose, number, paint, do or find
    answer     a choice; a number; a row of weights (key,) or a mask (query, key) of bool; of a
               `find` the set of (kind, layer, head) that count, from 0; of a `do` an act that meets
               the condition
    choices    what may be chosen
    tolerance  how far a number may be off; `share`: percent and fractions are read alike
    given      placeholders that the text and the hint may use; `shown`: the reveal alone
    done       of a `do`: whether an act, settings by their key, meets the condition
    row        the row that it is about, to point at
    """

    kind: str
    answer: Any
    choices: tuple[str, ...] = ()
    tolerance: float = 0.0
    share: bool = False
    given: Mapping[str, str] = field(default_factory=dict)
    shown: Mapping[str, str] = field(default_factory=dict)
    misconceptions: tuple[Misconception, ...] = ()
    veil: tuple[Veil, ...] = ()
    text: str = ""
    hint: str = ""
    reveal: str = ""
    done: Callable[[Mapping], bool] | None = None
    row: int | None = None

    def mark(self, answer: Any) -> Mark:
        """Marks an answer: one of `choices`; a number or its text; a row or a mask; (kind, layer,
        head); settings. Raises ValueError, with a sentence, for what is no answer at all."""
        return getattr(self, f"_mark_{self.kind}")(answer)

    def reveal_after(self, answer: Any = None) -> str:
        """The reveal, with what depends on the answer filled; without it, the sentence that says so
        is left out."""
        if self.kind != PAINT or self.answer.ndim == 2 or answer is None:
            return re.sub(r"\s*[^.!?]*\{distance\}[^.!?]*[.!?]", "", self.reveal)
        distance = percent(distance_of_rows(painted_row(answer, len(self.answer)), self.answer))
        return self.reveal.replace("{distance}", distance)

    def _mark_choose(self, answer: Any) -> Mark:
        if answer not in self.choices:
            raise ValueError(f"{str(answer)[:60]!r} is not one of the choices.")
        if answer == self.answer:
            return Mark(True, 1.0, "Right.")
        return self._wrong([m for m in self.misconceptions if m.answer == answer])

    def _mark_number(self, answer: Any) -> Mark:
        readings = numbers_in(answer, self.share)
        if any(self._equal(x, self.answer) for x in readings):
            return Mark(True, 1.0, "Right.")
        for x in readings:
            if mark := self._named(x):
                return mark
        near = max(2 * self.tolerance, LIMITS["close"] * abs(self.answer))
        if self.tolerance and any(abs(x - self.answer) <= near for x in readings):
            return Mark(False, 0.5, "Right idea; not exact.")
        return self._wrong([])

    def _equal(self, x: float, y: float) -> bool:
        return math.isfinite(y) and abs(x - y) <= self.tolerance + 1e-9 * max(1, abs(y))

    def _named(self, x: float) -> Mark | None:
        near = sorted(
            (m for m in self.misconceptions if self._equal(x, m.answer)),
            key=lambda m: abs(x - m.answer),
        )
        clash = near and any(
            self._equal(near[0].answer, m.answer) for m in self.misconceptions if m is not near[0]
        )
        return self._wrong(near[:1]) if near and not clash else None

    def _mark_paint(self, answer: Any) -> Mark:
        if self.answer.ndim == 2:
            mask = painted_mask(answer, self.answer.shape)
            if (mask == self.answer).all():
                return Mark(True, 1.0, "Right.")
            return self._wrong([m for m in self.misconceptions if (m.answer == mask).all()])
        row = painted_row(answer, len(self.answer))
        score = 1 - distance_of_rows(row, self.answer)
        if score >= VERY_CLOSE:
            return Mark(True, score, "Very close.")
        fitting = [m for m in self.misconceptions if m.answer(row)]
        if len(fitting) == 1:
            return Mark(score >= MAIN_PART, score, fitting[0].sentence, fitting[0].name)
        sentence = "Mostly right." if score >= MAIN_PART else "Compare the two rows."
        return Mark(score >= MAIN_PART, score, sentence)

    def _mark_find(self, answer: Any) -> Mark:
        try:
            kind, layer, head = answer
            head = str(kind), int(layer), int(head)
        except (TypeError, ValueError):
            raise ValueError("Give a head as attention type, layer and number.") from None
        if head in self.answer:
            return Mark(True, 1.0, "Right.")
        return self._wrong([m for m in self.misconceptions if head in m.answer])

    def _mark_do(self, answer: Any) -> Mark:
        if not isinstance(answer, Mapping):
            raise ValueError("Give a change as settings.")
        assert self.done is not None
        if self.done(answer):
            return Mark(True, 1.0, "Done.")
        return Mark(False, 0.0, "Not yet.")

    def _wrong(self, fitting: Sequence[Misconception]) -> Mark:
        """Named if it is one misconception and no other."""
        if len({m.name for m in fitting}) == 1:
            return Mark(False, 0.0, fitting[0].sentence, fitting[0].name)
        return Mark(False, 0.0, "No.")


def numbers_in(answer: Any, share: bool = False) -> list[float]:
    """A number as students type it: 0.46, 0,46 and 3/4; of a share also 46% and 46. The ways to
    read it, the likeliest first: “1,250” may be either. Raises ValueError."""
    text = str(answer).strip().replace("−", "-").replace("\u202f", "").replace("\xa0", "")
    percent = text.endswith("%")
    text = text.removesuffix("%").strip()
    texts = [text.replace(",", ".")]
    if re.fullmatch(r"-?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", text):
        texts = [text.replace(",", ""), *(texts if text.count(",") == 1 > text.count(".") else [])]
    numbers = []
    for parts in (text.split("/") for text in texts):
        pattern = r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?"
        written = len(text) <= LONGEST_NUMBER and len(parts) <= 2
        if not written or not all(re.fullmatch(pattern, part.strip(), re.I) for part in parts):
            raise ValueError(f"{str(answer)[:60]!r} is not a number.")
        number = float(parts[0])
        if len(parts) == 2:
            if not float(parts[1]):
                raise ValueError("You cannot divide by 0.")
            number /= float(parts[1])
        if not math.isfinite(number):
            raise ValueError("That number is too large.")
        numbers += [number / 100] if percent or (share and number > 1) else []
        numbers += [] if percent else [number]
    return numbers


def painted_row(answer: Any, length: int) -> np.ndarray:
    """Painted shares, scaled to add up to 1. Raises ValueError."""
    try:
        row = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("A painted row must be a list of numbers.") from None
    if row.shape != (length,):
        raise ValueError(f"The row must have {length} squares.")
    if not np.isfinite(row).all() or (row < 0).any() or not 0 < row.sum() < math.inf:
        raise ValueError("Shares cannot be negative, and at least one must be above 0.")
    return row / row.sum()


def painted_mask(answer: Any, shape: tuple[int, int]) -> np.ndarray:
    """Raises ValueError."""
    try:
        mask = np.asarray(answer)
    except ValueError:
        mask = np.array(None)
    if mask.shape != shape or mask.dtype != bool:
        raise ValueError(
            f"The mask must have {shape[0]} rows of {shape[1]} squares, each true or false."
        )
    return mask


def distance_of_rows(p: np.ndarray, q: np.ndarray) -> float:
    """Total variation: the share of the weight that lies elsewhere."""
    return float(np.abs(p - q).sum() / 2)


def choices_of(
    rng: Random, answer: str, wrong: Sequence[str | None], more: Sequence[str | None] = ()
) -> tuple[str, ...]:
    """The right answer, those of misconceptions, then the next best, shuffled. Raises NoQuestion
    if nothing but the answer is left."""
    choices = list(dict.fromkeys(c for c in (answer, *wrong, *more) if c is not None))
    if len(choices) < 2:
        raise NoQuestion(LIMITS["no_choice"])
    choices = choices[: LIMITS["most_choices"]]
    rng.shuffle(choices)
    return tuple(choices)


@dataclass(frozen=True)
class Draw:
    """What a question is drawn from: the step's keys, the run, the head, rows that the lesson used
    before, and a seed. Equal draws give equal questions."""

    keys: Mapping[str, Any]
    run: SentenceRun
    rng: Random
    head: NamedHead | None = None
    used: frozenset[int] = frozenset()
    used_columns: frozenset[int] = frozenset()
    second_sentence: str = ""
    chosen: list[int] = field(default_factory=list, compare=False)  # rows that `row` gave

    @property
    def ask(self) -> str:
        return self.keys.get("ask", "")

    @property
    def own(self) -> bool:
        """Whether the sentence is the student's."""
        return "own" in self.keys

    @property
    def of_head(self) -> NamedHead:
        if self.head is None:
            raise NoQuestion("This model has no such head.")
        return self.head

    @property
    def writing(self) -> SentenceRun:
        """The run of a model that writes a translation."""
        if not self.run.writes:
            raise NoQuestion("This model writes no translation.")
        return self.run

    def rows(self) -> HeadRows:
        return self.run.once(
            ("rows", self.of_head, self.used), lambda: HeadRows(self.run, self.of_head, self.used)
        )

    def row(self, fits: Callable[[int], bool] = lambda row: True) -> int:
        """The first row that the step's selector fits; with `any` a drawn one. Raises
        NoQuestion."""
        selector = self.keys.get("row", "any")
        rows = [row for row in self.rows().fitting(selector) if fits(row)]
        if not rows:
            raise NoQuestion(LIMITS["no_row"])
        row = self.rng.choice(rows) if "any" in selector else rows[0]
        self.chosen.append(row)
        return row


class QuestionType:
    """Draws questions of one subject. `asks`: what can be asked → the kind of question, which the
    method of that name draws; `sentences`: misconception → the sentence for it, which may use all
    placeholders."""

    name: ClassVar[str]
    asks: ClassVar[Mapping[str, str]]
    sentences: ClassVar[Mapping[str, str]] = {}

    def draw(self, draw: Draw) -> Question:
        """Raises NoQuestion."""
        return getattr(self, f"_{draw.ask.replace(' ', '_')}")(draw)

    def choose(
        self,
        draw: Draw,
        answer: str,
        wrong: Mapping[str, str | None],
        more: Sequence[str | None] = (),
        choices: tuple[str, ...] = (),
        shown: Mapping[str, str] | None = None,
        **parts: Any,
    ) -> Question:
        """A choice of the answer, those of misconceptions (`wrong`: their name → their answer), and
        `more`; or of `choices`. `parts`: of the question."""
        return Question(
            CHOOSE,
            answer,
            choices or choices_of(draw.rng, answer, [*wrong.values()], more),
            shown={"answer": answer} if shown is None else shown,
            misconceptions=self.mistakes(wrong, answer),
            **parts,
        )

    def number(self, answer: float, wrong: Mapping[str, float | None], **parts: Any) -> Question:
        """A number to work out; `wrong` and `parts` as for `choose`."""
        misconceptions = self.mistakes(wrong, answer)
        return Question(NUMBER, float(answer), misconceptions=misconceptions, **parts)

    def mistakes(self, answers: Mapping[str, Any], right: Any) -> tuple[Misconception, ...]:
        """Misconceptions that give an answer, and not the right one."""
        return tuple(
            Misconception(name, answer, self.sentences[name])
            for name, answer in answers.items()
            if answer is not None and not np.array_equal(answer, right)
        )
