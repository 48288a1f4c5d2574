"""Lesson files: what is wrong with one is said with its line, and the others work."""

import re
import statistics

import pytest

from headlight.app.lessons.lesson import SHIPPED_LESSONS, load_folder, load_lesson
from headlight.app.lessons.lesson_file import LessonError, words_in
from headlight.app.lessons.question import READ

GOOD = """---
title: A lesson
minutes: 5
paper: "3.2"
model: copy
sentence: a b c d
view: {page: stage, head: best aligning}
---

# read: First
point: picture

Some **text** here.

# choose: Second
type: row
ask: largest key
row: any

Which token does *{row}* attend to most?

## Hint

A hint.

## Reveal

*{key}*.

# choose: Third
type: statement
options:
  - say: Rows do.
    if: rows sum to 1
  - say: Rows do not.
    if: rows do not sum to 1
    because: They do.

Which is true?

## Reveal

Rows do.
"""
LINES = GOOD.splitlines()
OPTIONS = "\n".join(LINES[31:37]) + "\n"


BROKEN = [  # name, what is replaced, by what, the line that is named, a word of the sentence
    ("empty", GOOD, "", 1, "must start with"),
    ("no front matter", "---\ntitle", "title", 1, "must start with"),
    ("front matter without end", "}\n---\n", "}\n", 1, "does not end"),
    ("no title", "title: A lesson\n", "", 1, "title"),
    ("no minutes", "minutes: 5\n", "", 1, "minutes"),
    ("no model", "model: copy\n", "", 1, "model"),
    ("no sentence", "sentence: a b c d\n", "", 1, "sentence"),
    ("title is a list", "A lesson", "[a]", 2, "text"),
    ("empty title", "A lesson", '""', 2, "text"),
    ("minutes as words", "5\n", "five\n", 3, "whole number"),
    ("minutes below 1", "5\n", "0\n", 3, "whole number"),
    ("minutes yes", "5\n", "yes\n", 3, "whole number"),
    ("paper as a number", '"3.2"', "3.10", 4, "quotes"),
    ("unknown key", "minutes", "minuets", 3, "Did you mean “minutes”"),
    ("key twice", "minutes: 5", "title: B", 3, "twice"),
    ("model is a number", "copy", "7", 5, "text"),
    ("sentence is a number", "a b c d", "7", 6, "text"),
    ("no sentence for a model", "a b c d", "{en-de: a}", 6, "copy"),
    ("unknown need", "view: {page", "needs: [luck]\nview: {page", 7, "luck"),
    ("view is no mapping", "{page: stage, head: best aligning}", "stage", 7, "view"),
    ("unknown page", "page: stage", "page: stge", 7, "Did you mean “stage”"),
    ("unknown setting", "{page: stage,", "{page: attention, colour: red,", 7, "colour"),
    ("value of a setting", "{page: stage,", "{page: attention, layer: first,", 7, "layer"),
    ("unknown head", "best aligning", "best", 7, "best"),
    ("tab in YAML", "minutes: 5", "minutes:\t- 5", 3, "YAML"),
    ("bracket left open", "best aligning}", "best aligning", 7, "YAML"),
    ("alias", "minutes: 5", "minutes: *a", 3, "aliases"),
    ("text before the steps", "# read: First", "Hello.\n\n# read: First", 10, "before"),
    ("no step", GOOD[GOOD.index("# read"):], "", 9, "no step"),
    ("unknown kind", "# read: First", "# watch: First", 10, "watch"),
    ("no title of a step", "# read: First", "# read", 10, "title"),
    ("no text", "Some **text** here.", "", 10, "no text"),
    ("too many words", "Some **text**", "word " * 81, 10, "81|82|83|84"),
    ("unknown key of a step", "point:", "pint:", 11, "pint"),
    ("unknown point", "point: picture", "point: nothing", 11, "nothing"),
    ("no type", "type: row\n", "", 15, "type"),
    ("unknown type", "type: row", "type: raw", 16, "Did you mean “row”"),
    ("unknown question", "largest key", "largest", 17, "question"),
    ("question of another kind", "# choose: Second", "# number: Second", 16, "type"),
    ("unknown selector", "row: any", "row: sharpp", 18, "sharp"),
    ("row is a number", "row: any", "row: 3", 18, "text"),
    ("unknown part", "## Hint", "## Hints", 22, "Did you mean “Hint”"),
    ("part twice", "## Reveal\n\n*{key}*.", "## Hint\n\n*{key}*.", 26, "twice"),
    ("no reveal", "## Reveal\n\n*{key}*.", "", 15, "Reveal"),
    ("brace left open", "*{row}*", "*{row*", 20, "brace"),
    ("one option", OPTIONS[OPTIONS.index("  - say: Rows do not"):], "", 32, "2 to 5"),
    ("no options", OPTIONS, "options: none\n", 32, "list"),
    ("option without condition", "    if: rows sum to 1\n", "", 32, "if"),
    ("unknown condition", "if: rows sum to 1", "if: rows are long", 32, "rows are long"),
    ("options alike", "Rows do not.\n", "Rows do.\n", 32, "same"),
    ("no because", "    because: They do.\n", "", 32, "because"),
    ("a step to do without until", "# choose: Second\ntype: row\nask: largest key",
     "# do: It\npoint: row", 15, "until"),
    ("a step to read that reveals", "Some **text** here.", "Some.\n\n## Reveal\n\nX", 10,
     "cannot have a hint"),
]  # fmt: skip


def test_the_good_one_is_read(tmp_path):
    (tmp_path / "good.md").write_text(GOOD, encoding="utf-8")
    lesson = load_lesson(tmp_path / "good.md")
    assert [step.kind for step in lesson.steps] == ["read", "choose", "choose"]
    assert lesson.steps[1].source.parts["Hint"] == "A hint."
    assert [LINES[step.line - 1][:3] for step in lesson.steps] == ["# r", "# c", "# c"]


def test_a_step_on_a_former_page_stands_on_the_stage(tmp_path):
    (tmp_path / "former.md").write_text(GOOD.replace("page: stage", "page: alignment"), "utf-8")
    step = load_lesson(tmp_path / "former.md").steps[0]
    assert (step.page, step.place) == ("stage", {"depth": "head", "view": "best"})


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case[0])
def test_what_is_wrong_is_said_with_its_line(tmp_path, case):
    _, replaced, by, line, word = case
    assert replaced in GOOD
    file = tmp_path / "broken.md"
    file.write_text(GOOD.replace(replaced, by, 1), encoding="utf-8")
    (tmp_path / "good.md").write_text(GOOD, encoding="utf-8")
    with pytest.raises(LessonError) as caught:
        load_lesson(file)
    error = caught.value
    assert error.line == line and str(error).startswith(f"{file}:{line}: ")
    assert re.search(word, error.message), error.message
    assert error.message[0].isupper() or error.message[0] == "“"
    assert error.message.endswith((".", "?")) and "\n" not in error.message
    lessons, errors = load_folder(tmp_path)
    assert [lesson.name for lesson in lessons] == ["good"] and len(errors) == 1


@pytest.mark.parametrize(
    "data", [b"\xff\xfe---", b"---\n" + b"a" * 200_000, b"\0", b"---\n" + b"[" * 5000, None]
)
def test_files_that_are_no_text_or_are_not_there(tmp_path, data):
    if data:
        (tmp_path / "x.md").write_bytes(data)
    with pytest.raises(LessonError, match=r"x\.md:1: .*\." if data else "cannot be read"):
        load_lesson(tmp_path / "x.md")


# The texts of the shipped lessons

FILES = sorted(SHIPPED_LESSONS.glob("*.md"))


def texts_of(lesson):
    for step in lesson.source.steps:
        yield step.title
        yield step.text
        yield from step.parts.values()
        for option in step.keys.get("options", ()):
            if isinstance(option, dict):
                yield from (option[key] for key in ("say", "because") if key in option)


def sentences_of(text):
    """Without code, whose dots end no sentence."""
    text = re.sub(r"\{[^}]*\}|`[^`]*`", "X", text)
    for paragraph in re.split(r"\n\s*\n|\n\|", text):
        line = re.sub(r"[*_]", "", " ".join(paragraph.split()))
        yield from (s for s in re.split(r"(?<=[.!?:])\s+", line) if len(words_in(s)) > 1)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_form_of_a_lesson(file):
    lesson = load_lesson(file)
    steps, texts = lesson.steps, [lesson.title, *texts_of(lesson)]
    assert 8 <= len(steps) <= 14 and 5 <= lesson.minutes <= 10
    assert 2 * sum(step.kind != READ for step in steps) >= len(steps)
    assert steps[-1].asks_own_sentence and lesson.remember and lesson.limit
    assert sum(len(words_in(text)) for text in texts) <= 900
    lengths = {s: len(words_in(s)) for text in texts for s in sentences_of(text)}
    assert statistics.median(lengths.values()) <= 13
    assert not {s: n for s, n in lengths.items() if n > 25}
    for text in texts:
        assert not re.search(r"\b[Aa]n? \*?\{", text), text  # the article would not fit


def test_there_are_seven():
    lessons, errors = load_folder()
    assert len(lessons) == 7 and not errors
