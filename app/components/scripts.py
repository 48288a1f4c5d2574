"""Joins the components' scripts into one: neither a script passed to Streamlit as text nor one in
an exported page can import another file.

The files are ES modules in one plain style, so they can be read and linted as they are: imports are
named, and exports are marked at their declaration.
"""

import re
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Comments and blanks, which are for readers.
UNREAD = re.compile(r"^ *(//[^\n]*\n|/\*\*.*?\*/\n)?", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(r'^import \{([\w,\s]+)\} from "([^"]+)";$', re.MULTILINE)
JSON = re.compile(r'^import (\w+) from "([^"]+)" with \{ type: "json" \};$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|class|function\*?) (\w+))", re.MULTILINE)
LEFT = re.compile(r"^(?:import\b.*|export\b(?! default).*)", re.MULTILINE)


def read(name: str) -> str:
    """The text of a file in this folder."""
    return (HERE / name).read_text(encoding="utf-8")


def script(name: str, without: Iterable[str] = ()) -> str:
    """A script of this folder preceded by everything it imports, each file once and in its own
    scope. What it imports of files that it goes `without` is undefined: a page may be smaller by
    what it never reaches. Raises ValueError for an import or export in another style."""
    scopes = {file: f"const {_scope(file)} = {{}};" for file in map(HERE.joinpath, without)}
    text = _without_imports(HERE / name, scopes)
    return "\n".join([*scopes.values(), text])


def _without_imports(file: Path, scopes: dict[Path, str]) -> str:
    """A file's text with its imports taken from `scopes`, to which missing files are added."""

    def take(match: re.Match) -> str:
        other = (file.parent / match[2]).resolve()
        if other not in scopes:
            text = _without_imports(other, scopes)
            names = ", ".join(EXPORT.findall(text))
            inner = f"{EXPORT.sub('', text)}\nreturn {{ {names} }};"
            scopes[other] = f"const {_scope(other)} = (() => {{\n{inner}\n}})();"
        return f"const {{{match[1]}}} = {_scope(other)};"

    def take_json(match: re.Match) -> str:
        other = (file.parent / match[2]).resolve()
        held = other.read_text(encoding="utf-8").strip()
        scopes.setdefault(other, f"const {_scope(other)} = {held};")
        return f"const {match[1]} = {_scope(other)};"

    text = JSON.sub(take_json, IMPORT.sub(take, file.read_text(encoding="utf-8")))
    if left := LEFT.search(EXPORT.sub("", text)):
        raise ValueError(f"{file.name} cannot be joined because of the line {left[0]!r}")
    return text


def _scope(file: Path) -> str:
    folder = HERE if file.is_relative_to(HERE) else HERE.parent  # app/live uses components
    return "$" + re.sub(r"\W", "_", file.relative_to(folder).with_suffix("").as_posix())
