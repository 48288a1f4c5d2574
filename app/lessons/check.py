"""Checks lessons: that the file can be read, and that every step works on a model that is here."""

import os
from pathlib import Path

from headlight.app.lessons.lesson import Load, lesson_files, load_lesson
from headlight.app.lessons.lesson_file import LONGEST_PATH, LessonError
from headlight.model.messages import short


def check(path: Path, load: Load) -> tuple[list[str], list[LessonError]]:
    """A line for each lesson that works, and what is wrong with the others. Raises LessonError if
    there is no lesson at all."""
    files = lesson_files(path) if os.path.isdir(path) else [path]
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
            where, sentence = short(file, LONGEST_PATH), short(run.sentence, LONGEST_PATH)
            lines.append(f"{where}: {steps} steps work with {run.name} and “{sentence}”")
    return lines, errors
