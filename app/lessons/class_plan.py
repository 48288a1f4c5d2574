"""The plan for a class: what is asked, and what is shown then, step by step. Its words and the
addresses of its pictures are in class_plan.yaml, for the app and for the documentation."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_suffix(".yaml")
ASK, SHOW = "ask", "show"


@dataclass(frozen=True)
class Slide:
    """One view of the plan. `step`: its step, from 1; `kind`: ASK or SHOW; `text`, in Markdown:
    the question, or what one sees; `at`: the address in the app, without the model; `cover`: the
    row of the selected head that is covered, from 0, None for none. `answers`: to the question, as
    a room takes them: "word" for one of the source, "number", "share", or the choices; `right`: the
    one that is right, None where none is."""

    step: int
    kind: str
    text: str
    at: str
    cover: int | None = None
    answers: str | tuple[str, ...] = ()
    right: Any = None


@dataclass(frozen=True)
class PlanStep:
    """A step. `minutes`: from and to; `write`: what stands on the board. `why` and `misconception`
    are for the teacher; all in Markdown, "" where there is none. `checks`: what must hold for its
    numbers, see tests/claims.py."""

    title: str
    minutes: str
    write: str
    slides: tuple[Slide, ...]
    why: str
    misconception: str
    checks: tuple[str, ...]


@dataclass(frozen=True)
class ClassPlan:
    """`model`: on which all is shown; `short`: so many steps fill 45 minutes, all of them 90;
    `exit`: the question at the end."""

    model: str
    short: int
    exit: str
    steps: tuple[PlanStep, ...]

    @property
    def slides(self) -> tuple[Slide, ...]:
        """Of all steps, in their order."""
        return tuple(slide for step in self.steps for slide in step.slides)


@cache
def plan() -> ClassPlan:
    read = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    steps = tuple(_step(number, step) for number, step in enumerate(read["steps"], 1))
    return ClassPlan(read["model"], read["short"], read["exit"], steps)


def _step(number: int, step: Mapping[str, Any]) -> PlanStep:
    slides = []
    for part in step["parts"]:
        cover = part["cover"] - 1 if "cover" in part else None
        answers = part["answers"]
        answers = answers if isinstance(answers, str) else tuple(answers)
        slides.append(
            Slide(number, ASK, part["ask"], part["at"], cover, answers, part.get("right"))
        )
        slides += [Slide(number, SHOW, shown["see"], shown["at"]) for shown in part["show"]]
    return PlanStep(
        title=step["title"],
        minutes=step["minutes"],
        write=step.get("write", ""),
        slides=tuple(slides),
        why=step.get("why", ""),
        misconception=step.get("misconception", ""),
        checks=tuple(step.get("checks", ())),
    )
