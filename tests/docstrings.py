"""Docstrings for the reference: an extension of griffe, which reads them for mkdocstrings.

Classes describe their fields in columns, which Markdown would run together:

    attention     kind → (layers, heads, query, key)
    scores        kind → for each layer (heads, query, key)

It makes a list of them, and blocks of code of examples.
"""

import re

from griffe import Class, Extension, Object

EXAMPLE = re.compile(r"^(>>> .*(?:\n.+)*)", re.MULTILINE)  # to the next empty line
FIELD = re.compile(r"^(\w+(?:, \w+)*)(?:  +)(\S.*)$")


def listed(text: str) -> str:
    """Columns of fields as a list; the rest as it is."""
    lines, inside = [], False
    for line in text.splitlines():
        if found := FIELD.match(line):
            names = ", ".join(f"`{name}`" for name in found[1].split(", "))
            lines += ["" if not inside else None, f"- {names}: {found[2]}"]
            inside = True
        elif inside and line.startswith("    "):
            lines.append(f"    {line.strip()}")
        else:
            inside = False
            lines.append(line)
    return "\n".join(line for line in lines if line is not None)


class Fields(Extension):
    def on_class_instance(self, *, cls: Class, **_) -> None:
        if cls.docstring:
            cls.docstring.value = listed(cls.docstring.value)

    def on_instance(self, *, obj: Object, **_) -> None:
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\1\n```", obj.docstring.value)
