"""Lesson files: YAML front matter, then steps in Markdown. What is wrong is said with its line."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from headlight.app.export.assignment import exercise_names
from headlight.app.lessons.question import DO, FIND, KINDS, READ
from headlight.app.lessons.question_types import TYPES
from headlight.app.lessons.question_types.acts import UNTIL
from headlight.app.lessons.question_types.decoding import WithoutType
from headlight.app.lessons.question_types.masks import PAINTABLE_MASKS
from headlight.app.lessons.question_types.statements import ABOUT, conditions_of
from headlight.app.lessons.sentence_run import HEADS, WORD_CONDITIONS
from headlight.app.state.options import FORMER_VIEWS, PLACES
from headlight.app.state.pages import PAGES
from headlight.app.state.settings import SETTINGS
from headlight.model.analysis.head_metrics import RULES
from headlight.model.files import read_within
from headlight.model.messages import LONGEST_MESSAGE, reason, short

LARGEST, MOST_STEPS, MOST_WORDS, MOST_OPTIONS = 100_000, 40, 80, 5  # bytes, per lesson, step
LONGEST_PATH = 120  # characters of a file's path in a message
FRONT = (
    "title", "question", "minutes", "paper", "model", "sentence", "second sentence", "needs",
    "view", "write",
)  # fmt: skip
PARTS = ("Hint", "Reveal", "Remember", "Limit")
POINTS = ("picture", "row", "column", "token", "bars", "lines", "beams", "answer", "control")
NEEDS = (
    "a head that aligns the word read",
    "a head that aligns the word predicted",
    "two lines cross",
    "greedy and beam search differ",
)
TOKENS = ("attention and removal agree", "attention and removal differ", "content", "any")
STEP_KEYS = (
    "type", "ask", "view", "point", "row", "column", "token", "own", "options", "about", "until",
    "pattern", "needs", "head", "change", "against", "mask", "length", "real", "width", "d",
    "step",
)  # fmt: skip
OWN_VIEW = ("page", "head", "rows", "model", "sentence")  # beside settings


class LessonError(ValueError):
    """A lesson file that cannot be used: file, line from 1, and a sentence."""

    def __init__(self, file: Path | str, line: int, message: str):
        where = f"{short(file, LONGEST_PATH)}:{line}: "
        self.file, self.line, self.message = (
            file,
            line,
            short(message, LONGEST_MESSAGE - len(where)),
        )
        super().__init__(where + self.message)


@dataclass(frozen=True)
class StepText:
    """A step as the file has it. `parts`: Hint, Reveal, … → text; `line`: of its heading."""

    kind: str
    title: str
    keys: Mapping[str, Any]
    text: str
    parts: Mapping[str, str]
    line: int


@dataclass(frozen=True)
class LessonText:
    """A lesson as the file has it."""

    file: Path
    front: Mapping[str, Any]
    steps: tuple[StepText, ...]


class _Loader(yaml.SafeLoader):
    """Plain YAML: no aliases, which can grow without end, no tags, and mappings whose keys are
    texts, none of them twice."""

    def compose_node(self, parent, index):
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            raise _error("aliases are not allowed", event)
        if getattr(event, "tag", None) is not None:
            raise _error("tags are not allowed", event)
        return super().compose_node(parent, index)

    def compose_mapping_node(self, anchor):
        node = super().compose_mapping_node(anchor)
        keys = set()
        for key, _ in node.value:
            if key.tag != self.DEFAULT_SCALAR_TAG:
                raise _error("a key must be plain text", key)
            if key.value in keys:
                raise _error(f"the key “{short(key.value)}” appears twice", key)
            keys.add(key.value)
        return node


def _error(problem: str, at: yaml.Event | yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=at.start_mark)


class _Reader:
    """One file, with the checks that need no model."""

    def __init__(self, file: Path, text: str):
        self.file, self.lines = file, text.splitlines()

    def error(self, line: int, message: str) -> LessonError:
        return LessonError(self.file, line, message)

    def read(self) -> LessonText:
        if not self.lines or self.lines[0].strip() != "---":
            raise self.error(1, "A lesson must start with --- and front matter.")
        end = next((i for i, x in enumerate(self.lines[1:], 1) if x.strip() == "---"), None)
        if end is None:
            raise self.error(1, "The front matter does not end. Add a second ---.")
        front, places = self.yaml(1, end)
        self.check_front(front, places)
        starts = [i for i, line in enumerate(self.lines) if i > end and re.match(r"#(?!#)", line)]
        before = self.lines[end + 1 : starts[0] if starts else None]
        if stray := next((i for i, line in enumerate(before, end + 1) if line.strip()), None):
            raise self.error(
                stray + 1, "There is text before the first step. A step starts with “# ”."
            )
        if not starts:
            raise self.error(len(self.lines), "This lesson has no steps. A step starts with “# ”.")
        if len(starts) > MOST_STEPS:
            line = starts[MOST_STEPS] + 1
            raise self.error(line, f"A lesson can have at most {MOST_STEPS} steps.")
        ends = [*starts[1:], len(self.lines)]
        steps = [self.step(*span) for span in zip(starts, ends, strict=True)]
        return LessonText(self.file, front, tuple(steps))

    def yaml(self, start: int, end: int) -> tuple[dict, dict[str, int]]:
        """Lines [start, end) as a mapping, and the line of each key, from 1."""
        text = "\n".join(self.lines[start:end])
        try:
            loader = _Loader(text)
            try:
                node = loader.get_single_node()
                value = {} if node is None else loader.construct_document(node)
            finally:
                loader.dispose()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = start + 1 + (mark.line if mark else 0)
            raise self.error(min(line, end), f"This is not valid YAML: {error.problem}.") from None
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            deep = isinstance(error, RecursionError)
            why = "it is nested too deeply" if deep else reason(error)
            raise self.error(start + 1, f"This is not valid YAML: {why}.") from None
        if not isinstance(value, dict):
            raise self.error(start + 1, "Write lines of the form “key: value” here.")
        pairs = node.value if node is not None else ()
        return value, {key.value: start + 1 + key.start_mark.line for key, _ in pairs}

    def known(self, value: Any, names: Iterable[str], line: int, what: str) -> None:
        names = list(names)
        if value not in names:
            near = difflib.get_close_matches(short(value), names, 1)
            hint = f"Did you mean “{near[0]}”?" if near else "Choose from " + ", ".join(names) + "."
            raise self.error(line, f"There is no {what} “{short(value)}”. {hint}")

    def is_text(self, value: Any, line: int, what: str) -> None:
        if not isinstance(value, str) or not value.strip():
            raise self.error(line, f"{what} must be text.")

    def check_front(self, front: dict, places: dict[str, int]) -> None:
        for key in front:
            self.known(key, FRONT, places[key], "key")
        for key in ("title", "minutes", "model", "sentence"):
            if key not in front:
                raise self.error(1, f"The front matter has no “{key}”.")
        self.is_text(front["title"], places["title"], "A title")
        if "question" in front:
            self.is_text(front["question"], places["question"], "A question")
        minutes = front["minutes"]
        if type(minutes) is not int or not 1 <= minutes <= 60:
            raise self.error(places["minutes"], "“minutes” must be a whole number from 1 to 60.")
        if not isinstance(front.get("paper", ""), str):
            raise self.error(places["paper"], '“paper” must be text: write "3.2.1" in quotes.')
        models = names_in(front["model"])
        for model in models or [None]:
            self.is_text(model, places["model"], "A model")
        sentences = front["sentence"]
        if isinstance(sentences, dict) and (missing := set(models) - set(sentences)):
            raise self.error(places["sentence"], f"There is no sentence for {short(min(missing))}.")
        lists = sentences.values() if isinstance(sentences, dict) else [sentences]
        for sentence in [s for some in lists for s in names_in(some) or [None]]:
            self.is_text(sentence, places["sentence"], "A sentence")
        if "second sentence" in front:
            self.is_text(front["second sentence"], places["second sentence"], "A sentence")
        for need in names_in(front.get("needs")):
            self.known(need, NEEDS, places["needs"], "need")
        if "write" in front:
            self.known(front["write"], exercise_names(), places["write"], "exercise")
        self.check_view(front.get("view", {}), places.get("view", 1))

    def check_view(self, view: Any, line: int) -> None:
        if not isinstance(view, dict):
            raise self.error(line, "Write a view as {setting: value, …}.")
        for key, value in view.items():
            self.known(key, [*OWN_VIEW, *PLACES, *SETTINGS], line, "setting")
            if key == "page":
                self.known(FORMER_VIEWS.get(str(value), view)["page"], PAGES, line, "page")
            elif key == "head":
                self.known(value, HEADS, line, "head")
            elif key in PLACES:
                self.known(value, PLACES[key], line, key)
            elif key == "rows":
                self.known(value, ["read", "followed"], line, "way to label rows")
            elif key in ("model", "sentence"):
                self.is_text(value, line, f"“{key}”")
            elif key in SETTINGS and not SETTINGS[key].could_be(value):
                raise self.error(line, f"The setting “{key}” cannot be “{short(value)}”.")

    def step(self, start: int, end: int) -> StepText:
        kind, colon, title = self.lines[start][1:].partition(":")
        kind, title, line = kind.strip(), title.strip(), start + 1
        self.known(kind, KINDS, line, "kind of step")
        if not colon or not title:
            raise self.error(line, f"A step needs a title: “# {kind}: …”.")
        first = next((i for i in range(start + 1, end) if not self.lines[i].strip()), end)
        keys, places = self.yaml(start + 1, first) if first > start + 1 else ({}, {})
        for key in keys:
            self.known(key, STEP_KEYS, places[key], "key")
        texts = self.texts(first, end)
        text = texts.pop("")
        if not text:
            raise self.error(line, "This step has no text.")
        if (count := len(words_in(text))) > MOST_WORDS:
            raise self.error(line, f"This step has {count} words. The limit is {MOST_WORDS}.")
        self.check_keys(kind, keys, lambda key: places.get(key, line))
        if kind == READ and {"Hint", "Reveal"} & set(texts):
            raise self.error(line, "A “read” step cannot have a hint or a reveal.")
        if kind != READ and not texts.get("Reveal"):
            raise self.error(line, "A question needs “## Reveal”.")
        return StepText(kind, title, keys, text, texts, line)

    def texts(self, start: int, end: int) -> dict[str, str]:
        """Part → its text; that of the step itself is ""."""
        texts, part = {"": []}, ""
        for i in range(start, end):
            if self.lines[i].startswith("##"):
                part = self.lines[i].lstrip("#").strip()
                self.known(part, PARTS, i + 1, "part")
                if part in texts:
                    raise self.error(i + 1, f"“## {part}” appears twice in this step.")
                texts[part] = []
            else:
                for hole in re.findall(r"[{}]", re.sub(r"\{[^{}\n]+\}", "", self.lines[i])):
                    raise self.error(i + 1, f"The brace “{hole}” has no matching brace.")
                texts[part].append(self.lines[i])
        return {name: "\n".join(lines).strip() for name, lines in texts.items()}

    def check_keys(self, kind: str, keys: dict, line_of) -> None:
        wants = {DO: "until", FIND: "pattern"}.get(kind)
        if wants and wants not in keys:
            raise self.error(line_of(""), f"A “{kind}” step needs “{wants}”.")
        if kind in (READ, DO):
            if "type" in keys:
                raise self.error(line_of("type"), f"A “{kind}” step cannot have a type.")
        elif "type" not in keys:
            raise self.error(line_of(""), "A question needs a “type”.")
        else:
            types = [name for name, t in TYPES.items() if kind in t.asks.values()]
            self.known(keys["type"], types, line_of("type"), f"type for “{kind}” steps")
            asks = {a: k for a, k in TYPES[keys["type"]].asks.items()}
            ask = keys.get("ask", None if kind == FIND else "")
            wanted: Mapping[str | None, str] = {None: FIND} if kind == FIND else {**asks}
            if isinstance(ask, str | None) and wanted.get(ask) != kind:
                names = [a for a, k in asks.items() if k == kind and a]
                self.known(ask, names, line_of("ask"), f"question of this type for “{kind}” steps")
            elif not isinstance(ask, str | None):
                raise self.error(line_of("ask"), "“ask” must be text.")
        self.check_view(keys.get("view", {}), line_of("view"))
        self.check_values(keys, line_of)
        if keys.get("type") == "statement":
            self.check_options(keys, line_of("options"))

    def check_values(self, keys: dict, line_of) -> None:
        known = {
            "until": UNTIL,
            "pattern": RULES,
            "about": ABOUT,
            "point": POINTS,
            "head": HEADS,
            "change": WithoutType.CHANGES,
            "mask": PAINTABLE_MASKS,
            "token": TOKENS,
            "own": ["sentence"],
            "step": ["clear"],
            "column": ["sharp", "any"],
        }
        for key, names in known.items():
            if key in keys:
                self.known(keys[key], names, line_of(key), key)
        for key in ("needs", "against"):
            for name in names_in(keys.get(key)):
                names = NEEDS if key == "needs" else WithoutType.AGAINST
                self.known(name, names, line_of(key), {"needs": "need"}.get(key, key))
        if keys.get("ask") == "written" and not ("change" in keys and "against" in keys):
            raise self.error(line_of("ask"), "“ask: written” needs “change” and “against”.")
        if "row" in keys and not (keys["row"] == "third" and keys.get("type") == "mask"):
            self.is_text(keys["row"], line_of("row"), "“row”")
            for word in re.split(r",| or ", keys["row"]):
                self.known(word.strip(), WORD_CONDITIONS, line_of("row"), "selector")
        for key, least, most in (("length", 3, 12), ("real", 1, 11), ("width", 1, 10), ("d", 2, 6)):
            if key in keys and (type(keys[key]) is not int or not least <= keys[key] <= most):
                raise self.error(
                    line_of(key), f"“{key}” must be a whole number from {least} to {most}."
                )
        if keys.get("real", 0) >= keys.get("length", 13):
            raise self.error(line_of("real"), "“real” must be less than “length”.")

    def check_options(self, keys: dict, line: int) -> None:
        options = keys.get("options")
        if not isinstance(options, list) or not 2 <= len(options) <= MOST_OPTIONS:
            raise self.error(line, f"A statement needs a list of 2 to {MOST_OPTIONS} options.")
        for option in options:
            if not isinstance(option, dict) or not {"say", "if"} <= set(option):
                raise self.error(line, "An option needs “say” and “if”.")
            for key, value in option.items():
                self.known(key, ["say", "if", "because"], line, "key of an option")
                self.is_text(value, line, f"“{key}” of an option")
            for condition in conditions_of(option):
                self.known(condition, ABOUT[keys.get("about", "")][2], line, "condition")
        if len({option["say"] for option in options}) < len(options):
            raise self.error(line, "Two options are the same.")
        # The right one needs no sentence, and which it is, the run decides.
        if "own" not in keys and sum("because" not in option for option in options) > 1:
            raise self.error(line, "Every option except the right one needs “because”.")


def words_in(text: str) -> list[str]:
    """Its words; a placeholder is one."""
    pieces = re.sub(r"\{[^{}]*\}", "X", re.sub(r"[*_`]", "", text)).split()
    return [piece for piece in pieces if re.search(r"\w", piece)]


def names_in(value: Any) -> list:
    """A list, or one value alone."""
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def read_lesson(file: Path) -> LessonText:
    """Raises LessonError."""
    try:
        text = read_within(file, LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise LessonError(file, line, "This is not UTF-8 text.") from None
    except OSError as error:
        raise LessonError(file, 1, f"The file cannot be read: {reason(error)}.") from None
    except ValueError:
        raise LessonError(file, 1, f"A lesson can have at most {LARGEST:,} bytes.") from None
    return _Reader(file, text).read()
