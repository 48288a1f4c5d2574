"""Checks lessons: that the file can be read, and that every step works on a model that is here."""

from pathlib import Path

from headlight.app.lessons.lesson import Load, load_lesson
from headlight.app.lessons.lesson_file import LessonError


def check(path: Path, load: Load) -> tuple[list[str], list[LessonError]]:
    """A line for each lesson that works, and what is wrong with the others. Raises LessonError if
    there is no lesson at all."""
    files = sorted(path.glob("*.md")) if path.is_dir() else [path]
    if not files:
        raise LessonError(path, 1, "There are no lessons here: no file name ends in .md.")
    lines, errors = [], []
    for file in files:
        try:
            lesson = load_lesson(file)
            run = lesson.open(load)
        except LessonError as error:
            errors.append(error)
        else:
            steps = len(lesson.steps)
            lines.append(f"{file}: {steps} steps work with {run.name} and “{run.sentence}”")
    return lines, errors
