"""The file that `headlight check FILE` has judged. Its code runs on this machine, so it is given
when the app is started: no address and no class can name one."""

from pathlib import Path

from headlight.app.server import arguments, lan

YOURS_PATH = "yours"  # the address of its page


def checked_file() -> Path | None:
    """None where the app was started without one, or serves a class."""
    return None if lan.class_address() else arguments.given().check
