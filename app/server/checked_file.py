"""The file that `headlight check FILE` has judged. Its code runs on this machine, so it is given
when the app is started: no address and no class can name one."""

from pathlib import Path

from headlight.app.server import arguments, lan

YOURS_PATH = "yours"  # the address of its page


def split(place: str) -> tuple[Path, str]:
    """The file of FILE.py:NAME, and the name of a model in it; "" where none is named."""
    path, _, name = place.rpartition(":")
    return (Path(path), name) if path.endswith(".py") else (Path(place), "")


def checked_file() -> tuple[Path, str] | None:
    """As `split` gives it. None where the app was started without one, or serves a class."""
    given = arguments.given().check
    return split(given) if given and not lan.class_address() else None
