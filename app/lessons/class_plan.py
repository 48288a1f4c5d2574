"""The plan for a class, from its page in the documentation, which is installed with the app."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "teach-with-it.md"
APP = "http://localhost:8501/"  # where links of the page into the app lead


@dataclass(frozen=True)
class Section:
    """`body` is Markdown; its links lead to the app that shows it."""

    title: str
    body: str
    is_step: bool  # or the exit question; otherwise a heading above steps


@cache
def sections() -> tuple[Section, ...]:
    """All that a class needs, without what is done before it and what more there is to know."""
    text = re.sub(r"<!--.*?-->\n*", "", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = text.replace(f"]({APP}", "](./")
    _, begins, rest = text.partition("## Ask first, then show\n")
    needed, *_ = (begins + rest).split("## More for the teacher\n")
    return tuple(
        Section(title, body.strip(), len(marks) == 3)
        for marks, title, body in re.findall(
            r"^(###?) ([^\n]+)\n(.*?)(?=^###? |\Z)", needed, flags=re.DOTALL | re.MULTILINE
        )
    )
