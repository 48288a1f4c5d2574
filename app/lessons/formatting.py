"""Numbers in lessons, as texts."""

from collections.abc import Sequence

from headlight.model.rounding import percent
from headlight.model.tokenizer import CONTINUES


def fine_percent(share: float) -> str:
    """With as many decimals as a small share needs."""
    return percent(share, 2 if share < 0.001 else 1 if share < 0.3 else 0)


def number(x: float, digits: int = 6) -> str:
    return f"{x:.{digits}g}".replace("-", "−")


def change(x: float) -> str:
    """The size of a change that may be none at all."""
    return "0" if x == 0 else f"{x:.0e}".replace("-", "−")


def factor(x: float) -> str:
    return f"({number(x)})" if x < 0 else number(x)


def vector(entries: Sequence[float]) -> str:
    return "(" + ", ".join(number(x) for x in entries) + ")"


def sum_of_products(first: Sequence[float], second: Sequence[float], total: float) -> str:
    terms = (f"{factor(x)} · {factor(y)}" for x, y in zip(first, second, strict=True))
    return " + ".join(terms) + f" = {number(total)}"


def shape(*sizes: int) -> str:
    return "(" + ", ".join(map(str, sizes)) + ")"


def text(tokens: Sequence[str]) -> str:
    """Tokens of a model as a text. Pieces of a word are joined, punctuation follows it."""
    joined = " ".join(tokens).replace(f" {CONTINUES}", "")
    for mark in ".,!?;:":
        joined = joined.replace(f" {mark}", mark)
    return joined
