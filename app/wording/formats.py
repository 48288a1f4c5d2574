"""Numbers and text as they are shown: one format for one kind of number, Markdown escaped."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher


def signed(number: float) -> str:
    return f"{number:.2f}".replace("-", "−")


def percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def whole_percent(share: float) -> str:
    """A probability as whole percent; a positive one that rounds to 0 is “<1%”."""
    return "<1%" if 0 < share < 0.005 else f"{100 * share:.0f}%"


def size(count: int) -> str:
    """The size of a file of `count` bytes."""
    return f"{count / 1e6:,.0f} MB" if count >= 2e6 else f"{count / 1e3:,.0f} kB"


# What Streamlit makes of plain text once Markdown is parsed, where a backslash no longer helps:
# links of http://, www. and a@b.c, icons and emoji of :name:, arrows of -> and its like.
APART = re.compile(
    r"(?<=:)(?=//|[\w+-]+:)|(?<=www)(?=\.)|(?=@)|(?<=[-<>~])(?=[-=>])", re.IGNORECASE
)
NOTHING = ":small[]"  # an empty span: two texts instead of one


def escaped(text: str) -> str:
    """Text that Streamlit's Markdown shows as it is, in one paragraph."""
    parts = (re.sub(r"[!-/:-@[-`{-~]", r"\\\g<0>", part) for part in APART.split(text))
    return re.sub(r"^[ \t]|[\n\r]", lambda space: f"&#{ord(space[0])};", NOTHING.join(parts))


def times(shape: Sequence[int]) -> str:
    return " × ".join(f"{size:,}" for size in shape)


# Texts that follow one another, each with the HTML tag that it stands in, or "".
Parts = list[tuple[str, str]]
MARKS = {"": "", "b": "**", "em": "*", "s": "~~"}  # tag → what it is in Markdown


def differences(before: str, after: str) -> Parts:
    """The difference of two texts: new words bold, deleted words struck through."""
    old, new = before.split(), after.split()
    parts = []
    for tag, first, last, start, end in SequenceMatcher(None, old, new, False).get_opcodes():
        gone, words = (" ".join(some) for some in (old[first:last], new[start:end]))
        shown = [(words, "")] if tag == "equal" else [(gone, "s"), (words, "b")]
        for part in filter(lambda part: part[0], shown):
            parts += [(" ", ""), part] if parts else [part]
    return parts


def as_markdown(parts: Parts) -> str:
    """Texts in Markdown; the spaces around each stay, which `escaped` would set fast."""
    lines = []
    for text, tag in parts:
        core = text.strip(" ")
        before, _, after = text.partition(core) if core else (text, "", "")
        lines.append(f"{before}{MARKS[tag]}{escaped(core)}{MARKS[tag]}{after}" if core else text)
    return "".join(lines)
