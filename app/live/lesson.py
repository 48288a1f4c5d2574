"""A lesson as a live page carries it: the steps that need only what the page has."""

import re
from collections.abc import Mapping
from pathlib import Path

from headlight.app.lessons.lesson import (
    SHIPPED_LESSONS,
    LiveLesson,
    Load,
    Step,
    load_folder,
    load_lesson,
)
from headlight.app.lessons.question import DO, FIND, READ
from headlight.app.lessons.question_types import TYPES
from headlight.app.lessons.sentence_run import SentenceRun
from headlight.model.analysis.head_metrics import THRESHOLD

# Those in lesson.js.
ASKS = {
    "read: ",
    "row: largest key",
    "row: largest row",
    "shares: covered weight",
    "shares: weight after hiding",
    "shares: only key",
    "act: hidden {key} in this head",
    "named head: ",
}
WORDS = {"any", "late", "first", "word", "new", "sharp", "spread", "sink", "crossing", "repeated",
         "clearest"}  # fmt: skip
PATTERNS = {"previous token", "next token", "itself"}
# Of the shipped lessons, those with questions that a page can ask, and their models.
CARRIED = {"shares": "en-de", "query-key-value": "induction", "masks": "en-de"}
VIEWS = {"stage", "generate"}
SETTINGS = {"page", "head", "rows", "kind", "layer", "depth", "view"}  # of a view
PLACEHOLDERS = {"row", "next", "position", "before", "length", "key", "weight", "rest", "end share",
                "second key", "second weight"}  # fmt: skip


class CannotCarry(ValueError):
    """A lesson that a page of this model cannot hold, in a sentence."""


def find(name: str) -> LiveLesson:
    """A lesson by its file, or by the name of a shipped one, with or without its number. Raises
    CannotCarry and LessonError."""
    if name.endswith(".md"):
        return load_lesson(Path(name))
    lessons, _ = load_folder(SHIPPED_LESSONS)
    names = {re.sub(r"^\d+-", "", lesson.name): lesson for lesson in lessons}
    names |= {lesson.name: lesson for lesson in lessons}
    if name not in names:
        known = ", ".join(re.sub(r"^\d+-", "", lesson.name) for lesson in lessons)
        raise CannotCarry(f"There is no lesson “{name}”. Choose from {known}, or give a file.")
    return names[name]


def carried(lesson: LiveLesson, name: str, load: Load) -> dict:
    """What the page of the model `name` gets of a lesson. Raises CannotCarry."""
    runs = [run for run in lesson.runs() if run[0] == name]
    if not runs:
        models = " or ".join(dict.fromkeys(model for model, _ in lesson.runs()))
        raise CannotCarry(f"The lesson “{lesson.title}” is about {models}, not {name}.")
    checkpoint = load(name)
    tried = (SentenceRun(checkpoint, name, sentence) for _, sentence in runs)
    run = next((run for run in tried if lesson.problem(run, load) is None), None)
    if run is None:
        raise CannotCarry(f"The lesson “{lesson.title}” works on none of its sentences.")
    steps = [_step(step, run) for step in lesson.steps if step.concerns(run)]
    if not any(step["carried"] and step["kind"] != READ for step in steps):
        raise CannotCarry(f"A live page cannot ask any question of the lesson “{lesson.title}”.")
    return {
        "title": lesson.title,
        "sentence": run.sentence,
        "common": run.common,
        "steps": steps,
        "remember": lesson.remember,
        "limit": lesson.limit,
        "threshold": THRESHOLD,
    }


def left_out(carried: Mapping) -> list[str]:
    return [step["title"] for step in carried["steps"] if not step["carried"]]


def _step(step: Step, run: SentenceRun) -> dict:
    """Of a step that is left out, its rows alone count: later ones may ask for others."""
    keys, asks = step.source.keys, asks_of(step)
    if not _is_carried(step, run, asks):
        knows = _has_rows(step) and _has_head(step)
        head = step.head(run) if knows else None
        row = {"row": keys["row"]} if head else {}
        return {"carried": False, "kind": step.kind, "title": step.title, "question": asks,
                "keys": row, "head": head and vars(head), "own": False}  # fmt: skip
    view = step.view(run)
    head = step.head(run)
    return {
        "carried": True,
        "kind": step.kind,
        "title": step.title,
        "question": asks,
        "keys": {name: keys[name] for name in ("row", "column", "pattern", "view") if name in keys},
        "head": head and vars(head),
        "own": step.asks_own_sentence,
        "page": view["page"]
        if view["page"] != "stage"
        else "alignment"
        if "view" in step.place
        else "attention",
        "focus": {"kind": view["kind"], "layer": view["layer"] - 1, "head": view["head"] - 1}
        if "head" in view
        else None,
        "text": step.source.text,
        "hint": step.source.parts.get("Hint", ""),
        "reveal": step.source.parts.get("Reveal", ""),
        "sentences": TYPES[keys["type"]].sentences if "type" in keys else {},
    }


def asks_of(step: Step) -> str:
    """Type and ask of a question, as ASKS and lesson.js name it."""
    keys = step.source.keys
    if step.kind == READ:
        return "read: "
    if step.kind == DO:
        return f"act: {keys['until']}"
    return f"{keys['type']}: {keys.get('ask', '')}"


def _has_rows(step: Step) -> bool:
    """Whether the page knows which rows the step is about."""
    words = re.split(r",| or ", str(step.source.keys.get("row", "no row")))
    return {word.strip() for word in words} <= WORDS


def _has_head(step: Step) -> bool:
    """Whether it is a head of the page's model, and always the same."""
    return "model" not in step._view and "any" not in (step._view.get("head"),
                                                       step.source.keys.get("head"))  # fmt: skip


def _is_carried(step: Step, run: SentenceRun, asks: str) -> bool:
    keys, view = step.source.keys, step._view
    texts = step.source.text + step.source.parts.get("Hint", "")
    known = {*run.common, *PLACEHOLDERS}
    return (
        asks in ASKS
        and ("row" not in keys or _has_rows(step))
        and _has_head(step)
        and view.get("page") in VIEWS
        and set(view) <= SETTINGS
        and "$" not in texts
        and (step.kind != FIND or keys["pattern"] in PATTERNS)
        and (step.kind != READ or set(re.findall(r"\{([^{}]+)\}", texts)) <= known)
    )
