"""What a setting is: type and limits of its value, its widget, its page, and what it depends on. No
Streamlit here: code that reads files uses it, too.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from headlight.model.probing.sites import Part, kinds_of
from headlight.model.sites import Side, Site

LONGEST_TEXT = 100_000  # characters; more than any model reads
MANY = 1000  # layers or heads
MAX_POSITION = 100_000  # tokens, dimensions and the like that a number box takes
ABSENT = object()


@dataclass(frozen=True)
class Structure:
    """The structure of a model: the texts it reads, and where attention happens."""

    sides: Sequence[Side]
    sites: Sequence[Site]
    parts: Sequence[Part]  # what changes can be made to
    opens: Mapping = field(default_factory=dict)  # the head to open on, from the model's card
    lacks: str = ""  # see Checkpoint.lacks

    @property
    def kinds(self) -> dict[str, tuple[Site, ...]]:
        return kinds_of(self.sites)


class Catalog(Protocol):
    """The functions of app/state/catalog.py that settings use."""

    def models(self) -> Sequence[str]: ...
    def devices(self) -> Sequence[str]: ...
    def steps(self, name: str, /) -> Collection[str]: ...
    def examples(self, name: str, /) -> Sequence[str]: ...
    def alike(self, name: str, /) -> Sequence[str]: ...
    def structure(self, name: str, step: str, device: str) -> Structure | None: ...


@dataclass(frozen=True)
class Context:
    """What a setting may depend on: the settings before it, and the available models."""

    values: dict
    catalog: Catalog

    def __getitem__(self, key: str):
        return self.values[key]

    @cached_property
    def structure(self) -> Structure | None:
        """The structure of the selected model; None if it cannot be read."""
        return self.catalog.structure(self["model"], self["step"], self["device"])

    @property
    def known(self) -> Structure:
        """`structure`, where a page is drawn: of a model that can be read."""
        assert self.structure is not None
        return self.structure

    def masks(self, switch: str) -> bool:
        """Whether a switch of Masks applies to the model."""
        return self.structure is None or any(switch in s.masks for s in self.structure.sites)

    @property
    def writes(self) -> bool:
        """Whether the model writes a target."""
        return self.structure is None or any(side.writes for side in self.structure.sides)

    @property
    def predicts_tokens(self) -> bool:
        """Whether rows of the logits predict the next token."""
        return self.structure is None or any(
            side.predicts == "next token" for side in self.structure.sides
        )

    @property
    def lacks(self) -> str:
        """See Checkpoint.lacks; "" of a model that cannot be read."""
        return self.structure.lacks if self.structure else ""

    @property
    def can_change(self) -> bool:
        """Whether anything in the model can be changed."""
        return self.structure is None or bool(self.structure.parts)

    @property
    def has_other(self) -> bool:
        """Whether there is another run to compare with."""
        keys = ("other", "other_model", "other_step")
        return self["other_masks"] or any(self[key].strip() for key in keys)


@dataclass(frozen=True)
class Limits:
    """The values that a setting can have at the moment: one of `options`, a number from `least` to
    `most`, or any text. `default` is its value if the user chose none."""

    default: Any
    options: Sequence = ()
    least: float = 0
    most: float = 0

    def allows(self, value) -> bool:
        if type(value) is not type(self.default):
            return False
        if isinstance(value, list):
            several = len(set(value)) == len(value)
            return several and all(item in self.options for item in value)
        if self.options:
            return value in self.options
        if isinstance(value, str):
            return len(value) <= LONGEST_TEXT and _is_text(value)
        return isinstance(value, bool) or self.least <= value <= self.most

    def nearest(self, value):
        """The value if it is allowed, or else the nearest allowed one."""
        if self.allows(value):
            return value
        if type(value) is not type(self.default):
            return self.default
        if isinstance(value, list):
            return [item for item in dict.fromkeys(value) if item in self.options]
        if isinstance(value, str) and not self.options:
            return value.encode("utf-8", "replace").decode()[:LONGEST_TEXT]
        if isinstance(value, str):
            # For numbered tokens, such as “3 dog”: the one at the same position.
            number = value.partition(" ")[0]
            same = (o for o in self.options if number.isdecimal() and o.startswith(f"{number} "))
            return next(same, self.default)
        if isinstance(value, (int, float)) and value == value:
            if self.options:
                return min(self.options, key=lambda option: abs(option - value))
            return type(value)(min(max(value, self.least), self.most))
        return self.default


@dataclass(frozen=True)
class Setting:
    """A setting.

    default   its value if the user chose none; also gives the type
    widget    how it is drawn: toggle, segmented, select, slider,
              number, line, area, pills, several (a list of options) or expander
    options   its options, or a function of the Context; a number has `least` and `most`
    among     if `options` is a function: all options that it can return
    opens     the default as a function of the Context, if it depends on it
    concerns  whether it applies in a Context; if not, it is not drawn and has its default
    pages     the pages that draw it, perhaps with options of their own; empty: the top bar
    name      its name in a sentence
    run       whether a run depends on it
    address   whether it is in the address
    header    the text for a value other than the default in a file's header
    badge     its label in the bar if it differs from the model as trained
    item      the type of a list's items
    look      further arguments of its widget
    """

    key: str
    label: str
    default: Any
    widget: str
    help: str | None = None
    options: Sequence | Callable[[Context], Sequence] = ()
    among: Sequence = ()
    least: float = 0
    most: float = 0
    opens: Callable[[Context], Any] | None = None
    concerns: Callable[[Context], bool] = lambda context: True
    pages: tuple[str, ...] = ()
    name: str = ""
    run: bool = False
    address: bool = True
    header: str = ""
    badge: str = ""
    item: type = str
    look: Mapping = field(default_factory=dict)

    def stands_on(self, page: str) -> bool:
        """Whether it is drawn while this page is open."""
        return not self.pages or page in self.pages

    def limits(self, context: Context) -> Limits:
        """Its limits in a context."""
        default = self.opens(context) if self.opens else self.default
        options = self.options(context) if callable(self.options) else self.options
        return Limits(default, options, self.least, self.most)

    def could_be(self, value) -> bool:
        """Whether it can have this value in any context; for values from a file."""
        if type(value) is list and type(self.default) is list:
            if len(value) > MANY or not all(type(item) is self.item for item in value):
                return False
            return callable(self.options) or not self.options or self._free.allows(value)
        return self._free.allows(value)

    @property
    def _free(self) -> Limits:
        options = self.among if callable(self.options) else self.options
        return Limits(self.default, options, self.least, self.most)

    def parse(self, texts: Sequence[str]):
        """Parses its value from the address; ABSENT if it is not valid."""
        if isinstance(self.default, list):
            return [self._parse_one(text, self.item) for text in texts if text]
        return self._parse_one(texts[-1], type(self.default)) if texts else ABSENT

    def _parse_one(self, text: str, kind: type):
        if not callable(self.options) and self.options:
            return next((o for o in self.options if str(o) == text), ABSENT)
        if kind is int:  # a row is written as on screen: its number, then its token
            text = text.partition(" ")[0]
        try:
            return {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)
        except (KeyError, ValueError):
            return ABSENT

    def as_text(self, value) -> str | list[str]:
        """Its value as written in the address."""
        if isinstance(value, list):
            return [str(item) for item in value]
        return str(value).lower() if isinstance(value, bool) else str(value)


def _is_text(value: str) -> bool:
    """Whether the text is valid Unicode: a lone surrogate fits into no file and no tokenizer."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
