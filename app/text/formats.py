"""Numbers and text as they are shown: one format for one kind of number, Markdown escaped."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from headlight.model.rounding import fixed


def signed(number: float, digits: int = 2) -> str:
    """A number with a minus sign, where a browser would write a hyphen."""
    return fixed(number, digits).replace("-", "−")


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


def as_text(markdown: str) -> str:
    """What one reads of Markdown that has no more than emphasis, such as that of `escaped`."""

    def read(found: re.Match) -> str:
        return found[1] or (chr(int(found[2])) if found[2] else "")

    return re.sub(r"\\(.)|&#(\d+);|\*+", read, markdown.replace(NOTHING, ""))


def listed(parts: Sequence[str]) -> str:
    """One, or “a and b”, or “a, b and c”."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def times(shape: Sequence[int]) -> str:
    return " × ".join(f"{size:,}" for size in shape)


# Texts that follow one another, each with the HTML tag that it stands in, or "".
Parts = list[tuple[str, str]]
PIECE = re.compile(
    r"\s*(?:[^\s.,;:!?…]+|[.,;:!?…]+)"
)  # a word or punctuation, and what is before it
MARKS = {"": "", "b": "**", "em": "*", "s": "~~"}  # tag → what it is in Markdown


def emphasised(markdown: str) -> Parts:
    """Text in parts: between single asterisks it is emphasised, between double ones bold, between
    backticks code."""
    signs = {"": "", "**": "b", "*": "em", "`": "code"}
    found: Parts = []
    for piece in re.split(r"((?<!\\)(?:\*\*|\*|`)(?:\\.|[^*`\\])+(?:\*\*|\*|`))", markdown):
        sign = (re.match(r"\*\*|\*|`", piece) or [""])[0]
        if piece:
            found.append((as_text(piece.strip(sign) if sign else piece), signs[sign]))
    return found


def paragraphs(markdown: str) -> list[Parts]:
    return [emphasised(text) for text in re.split(r"\n\s*\n", markdown.strip()) if text]


def differences(before: str, after: str) -> Parts:
    """The difference of two texts: new words bold, deleted words struck through. A punctuation mark
    counts by itself, so that a sentence that ends earlier keeps its last word."""
    old, new = (PIECE.findall(text) for text in (before, after))
    one, other = ([piece.strip() for piece in text] for text in (old, new))
    alike = SequenceMatcher(None, one, other, False)
    parts: Parts = []
    for tag, first, last, start, end in alike.get_opcodes():
        gone, words = "".join(old[first:last]), "".join(new[start:end])
        shown = [(words, "")] if tag == "equal" else [(gone, "s"), (words, "b")]
        for text, mark in filter(lambda part: part[0], shown):
            follows_deleted = parts and parts[-1][1] == "s"
            # Markdown ignores ~~ and ** between a letter and a punctuation mark.
            is_apart = text[0].isspace() or (mark and (follows_deleted or not text[0].isalnum()))
            parts += [(" ", "")] if parts and is_apart else []
            parts.append((text.strip(), mark))
    return parts


def as_markdown(parts: Parts) -> str:
    """Texts in Markdown; the spaces around each stay, which `escaped` would set fast."""
    lines = []
    for text, tag in parts:
        core = text.strip(" ")
        before, _, after = text.partition(core) if core else (text, "", "")
        lines.append(f"{before}{MARKS[tag]}{escaped(core)}{MARKS[tag]}{after}" if core else text)
    return "".join(lines)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
