"""The arguments of commands, and of functions that anybody may call."""

import argparse
import reprlib
from numbers import Integral, Real

from headlight.model.messages import LONGEST_MESSAGE, short


class Parser(argparse.ArgumentParser):
    """Its messages are short, whatever was typed."""

    def error(self, message: str):
        super().error(short(message, LONGEST_MESSAGE))


def parser_of(command: str, doc: str | None) -> Parser:
    """A parser for `headlight COMMAND`, whose module docstring is the help text: `--help`
    begins with the first paragraph of `doc` and ends with the others."""
    about, _, more = (doc or "").partition("\n\n")
    return Parser(
        prog=f"headlight {command}",
        description=about,
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:1 or mps")


def may_change_shipped(parser: argparse.ArgumentParser) -> None:
    """Adds the explicit yes that `checkpoint.keep_shipped` asks for."""
    parser.add_argument(
        "--change-shipped",
        action="store_true",
        help="write the results into a model that came with Headlight",
    )


def whole(name: str, value: object, least: int, most: int | None = None) -> None:
    """Raises ValueError unless the value is a whole number in this range, ends included."""
    if not (
        isinstance(value, Integral)
        and not isinstance(value, bool)
        and least <= int(value)
        and (most is None or int(value) <= most)
    ):
        span = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise ValueError(f"{name} must be a whole number {span}, not {reprlib.repr(value)}.")


def number(name: str, value: object, least: float, most: float, above: bool = False) -> None:
    """Raises ValueError unless the value is a number in this range, ends included; with `above`,
    without its lower end."""
    if not (
        isinstance(value, Real)
        and not isinstance(value, bool)
        and least <= float(value) <= most  # not NaN
        and not (above and value == least)
    ):
        span = f"above {least:g} and at most" if above else f"from {least:g} to"
        raise ValueError(f"{name} must be a number {span} {most:g}, not {reprlib.repr(value)}.")


def kind_of(name: str, value: object, types: type | tuple[type, ...], expected: str) -> None:
    """Raises TypeError for a value of another type; `expected` is what it should be, in words."""
    if not isinstance(value, types):
        raise TypeError(f"{name} must be {expected}, not {reprlib.repr(value)}.")
