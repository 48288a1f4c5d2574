"""What one can set in the sidebar, and what each setting may be: for the sidebar itself, and for
settings that come from a file."""

from collections.abc import Mapping
from dataclasses import dataclass

from model.reading import SPECIAL_TOKENS
from model.trace import KINDS

SHOWN = ("all", "one kind", "joint")
SCALES = ("linear", "square root", "per row")
ORDERS = ("layer and head", "entropy", "distance", "change")
AVERAGES = {"one head": "", "heads": "heads", "layers": "layers", "both": "both"}
MAX_PADDED = 64  # enough to see padding with any one sentence
MOST_HIDDEN = 0.5  # weights above it are always shown
FINAL = "final"  # the training step that a model ends with

LONGEST_TEXT = 100_000  # characters; no model reads as much
MANY = 1000  # layers or heads


@dataclass(frozen=True)
class Choice:
    """A setting: the value it has where nobody chose, and what it may be: one of `options`, or
    from `least` to `most`, or any text."""

    default: str | bool | int | float
    options: tuple[str, ...] = ()
    least: float = 0
    most: float = 0

    def allows(self, value) -> bool:
        if type(value) is not type(self.default):
            return False
        if self.options:
            return value in self.options
        if isinstance(value, str):
            return len(value) <= LONGEST_TEXT and _is_text(value)
        return isinstance(value, bool) or self.least <= value <= self.most


# key of the sidebar's widget → what it may be; the device alone is left out: it says where the
# model runs, not what is seen.
CHOICES = {
    "model": Choice(""),
    "step": Choice(FINAL),
    "source": Choice(""),
    "line": Choice(""),
    "target": Choice(""),
    "causal": Choice(True),
    "src_padding": Choice(True),
    "tgt_padding": Choice(True),
    "memory_padding": Choice(True),
    "pad_to": Choice(0, most=MAX_PADDED),
    "kind": Choice("cross", tuple(KINDS)),
    "layer": Choice(1, least=1, most=MANY),
    "head": Choice(1, least=1, most=MANY),
    "show": Choice("all", SHOWN),
    "scale": Choice("linear", SCALES),
    "order": Choice("layer and head", ORDERS),
    "average": Choice("one head", tuple(AVERAGES)),
    "special": Choice("show", SPECIAL_TOKENS),
    "words": Choice(False),
    "least": Choice(0.0, most=MOST_HIDDEN),
    "projector": Choice(False),
}


def complete(chosen: Mapping) -> dict:
    """Every setting: what was chosen where that is possible, else its default."""
    return {
        key: chosen[key] if choice.allows(chosen.get(key)) else choice.default
        for key, choice in CHOICES.items()
    }


def _is_text(value: str) -> bool:
    """Not half of a character, which no file and no tokenizer takes."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
