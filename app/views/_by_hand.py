"""Arithmetic shown with as few digits as give the digits of the result."""

import math
import re
from collections.abc import Callable, Sequence

MOST_DIGITS = 8


def multiplied_out(score: float, shift: float, total: float) -> tuple[str, str]:
    """A softmax by hand: from a score to its share of `total`, with just enough digits that the
    displayed numbers give the displayed result; and the total as it is displayed."""
    agrees, exponent, before, power, of = False, "", ("", ""), "", ""
    for decimals in range(2, MOST_DIGITS):
        for digits in range(3, decimals + 2):
            exponent = f"{score - shift:.{decimals}f}"
            before = f"{score:.{decimals}f}", f"{shift:.{decimals}f}"
            power, of = (f"{x:.{digits}g}" for x in (math.exp(score - shift), total))
            agrees = (
                f"{float(before[0]) - float(before[1]):.{decimals}f}" == exponent
                and f"{math.exp(float(exponent)):.{digits}g}" == power
                and f"{float(power) / float(of):.1%}" == f"{math.exp(score - shift) / total:.1%}"
            )
            if agrees:
                break
        if agrees:
            break
    less = f", minus the row's maximum {before[1]}, is {exponent}" if shift else ""
    return f"{before[0]}{less}; e^{exponent} = {power}, divided by {of}", of


def terms_of(total: str, terms: Sequence[float]) -> list[str]:
    """The terms of a displayed total as texts, with just enough digits that they add up to it."""
    digits = len(re.sub(r"e.*|\D", "", total).lstrip("0"))
    texts: list[str] = []
    for decimals in range(2, MOST_DIGITS + 1):
        texts = [f"{x:.{decimals}g}" for x in terms]
        if f"{sum(map(float, texts)):.{digits}g}" == total:
            break
    return texts


def operand(number: str) -> str:
    """A number as a term or factor: negative ones stand in parentheses."""
    return f"(−{number[1:]})" if number.startswith("-") else number


def product(first: str, second: str) -> str:
    return f"{operand(first)} · {operand(second)}"


def sum_of_products(terms: Sequence[Sequence[float]]) -> float:
    return sum(math.prod(term) for term in terms)


def by_hand(
    compute: Callable, terms: Sequence[Sequence[float]], result: str = ".2f"
) -> tuple[list[str], str]:
    """All numbers of `terms` and the result as texts, with just enough digits that the displayed
    numbers give the displayed result. With one term, `compute` gets its numbers; with more, the
    list of terms."""
    exact = format(_call(compute, [[float(x) for x in term] for term in terms]), result)
    texts: list[list[str]] = []
    for digits in range(2, MOST_DIGITS + 1):
        texts = [[f"{float(x):.{digits}f}" for x in term] for term in terms]
        shown = _call(compute, [[float(x) for x in term] for term in texts])
        if format(shown, result) == exact:
            break
    return [text for term in texts for text in term], exact


def _call(compute: Callable, terms: Sequence[Sequence[float]]) -> float:
    return compute(terms[0]) if len(terms) == 1 else compute(terms)
