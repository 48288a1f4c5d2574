"""What a file says of its model, mostly a config.json: anyone may have written it, so that each
value is checked as it is read."""

import reprlib
from collections.abc import Collection, Mapping
from pathlib import Path

from headlight.model.files import read_json
from headlight.model.messages import reason

MOST_BYTES = 2**22  # of a file in JSON
MOST_COUNT = 2**31 - 1  # of what is counted, and the largest id
LONGEST = 2**24  # tokens; ten million is the most that a model is said to read
MOST_QUOTED = 60  # characters of a value in a sentence


class CannotLoad(ValueError):
    """A folder or file that cannot be loaded, in a sentence."""


class Described:
    """The values at a place; `said_by` is what to call it. Raises CannotLoad."""

    def __init__(self, values: Mapping[str, object], where: str, said_by: str = "config.json"):
        self.values, self.where, self.said_by = values, where, said_by

    def count(self, *names: str, default: int | None = None, most: int = MOST_COUNT) -> int:
        """A whole number, at least 1, under one of the names, or under several the same."""
        given = {n: self.values[n] for n in names if self.values.get(n) is not None}
        value = next(iter(given.values()), None)
        if any(other != value for other in given.values()):
            both = " and ".join(f"{quoted(one)} for {name}" for name, one in given.items())
            raise CannotLoad(f"{self.where} has {both}, which must be the same.")
        if value is None and default is not None:
            return default
        if type(value) is not int or not 1 <= value <= most:
            verb = "lacks" if value is None else f"has {quoted(value)} for"
            raise CannotLoad(
                f"{self.where} {verb} {names[0]}; it must be a whole number from 1 to {most:,}."
            )
        return value

    def number(self, name: str, default: float, least: float, most: float) -> float:
        value = self.values.get(name)
        value = default if value is None else value
        is_number = not isinstance(value, bool)
        if is_number and isinstance(value, int | float) and least <= value <= most:  # not NaN
            return float(value)
        raise CannotLoad(
            f"{self.where} has {quoted(value)} for {name}; it must be a number from "
            f"{least:,.15g} to {most:,.15g}."
        )

    def numbers(self, name: str, least: float, most: float) -> tuple[float, ...]:
        """A list of numbers."""
        values = self.values.get(name)
        if (
            not values
            or not isinstance(values, list)
            or not all(type(value) in (int, float) and least <= value <= most for value in values)
        ):
            raise CannotLoad(
                f"{self.where} must have a list of numbers from {least:,.15g} to {most:,.15g} "
                f"for {name}."
            )
        return tuple(map(float, values))

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.values.get(name)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise CannotLoad(
                f"{self.where} has {quoted(value)} for {name}; it must be true or false."
            )
        return value

    def token(self, name: str) -> int:
        """The id of a special token, the first of several; -1: there is none."""
        value = self.values.get(name)
        value = value[0] if isinstance(value, list) and value else value
        value = -1 if value is None else value
        if type(value) is not int or not -1 <= value <= MOST_COUNT:
            raise CannotLoad(f"{self.where} has {quoted(value)} for {name}; it must be a token id.")
        return value

    def choice(self, name: str, known: Collection[str], default: str) -> str:
        """One of the known names."""
        value = self.values.get(name)
        value = default if value is None else value
        if not isinstance(value, str) or value not in known:
            raise CannotLoad(
                f"{self.where} has {quoted(value)} for {name}; supported: {', '.join(known)}."
            )
        return value

    def inside(self, name: str) -> "Described":
        """The values that stand under a name; none where it does not."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, dict):
            raise CannotLoad(
                f"{self.where} has {quoted(value)} for {name}; it must hold key–value pairs."
            )
        return Described(value or {}, self.where, self.said_by)

    def refuse(self, name: str, *usual: object) -> None:
        """Raises where there is a value that our classes have no part for."""
        if self.values.get(name, usual[0]) not in usual:
            raise CannotLoad(
                f"{self.where} has {quoted(self.values[name])} for {name}, which Headlight does "
                "not support."
            )

    def refuse_others(self, known: Collection[str]) -> None:
        """Raises where there is a name that is not known."""
        for name in sorted(self.values.keys() - known):
            raise CannotLoad(
                f"{self.where} has {quoted(self.values[name])} for {name[:MOST_QUOTED]!r}, which "
                "Headlight does not know."
            )


def json_in(file: Path) -> object:
    """What a file in JSON says. Raises CannotLoad."""
    try:
        return read_json(file, MOST_BYTES)
    except OSError as error:
        raise CannotLoad(f"{file} cannot be read: {reason(error)}.") from None
    except ValueError as error:
        raise CannotLoad(str(error)) from None


def values_in(file: Path) -> dict:
    """The values of a config.json. Raises CannotLoad."""
    values = json_in(file)
    if not isinstance(values, dict):
        raise CannotLoad(f"{file} does not describe a model: it has no key–value pairs.")
    return values


def quoted(value: object) -> str:
    """A value of a file for a sentence: it may be as long as the file, and lines long."""
    text = reprlib.repr(value)
    return text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}…"
