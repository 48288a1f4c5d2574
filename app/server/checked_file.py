"""The file that `headlight check FILE` has judged. Its code runs on this machine, so it is given
when the app is started: no address and no class can name one."""

import argparse
import sys
from pathlib import Path

from headlight.app.server import lan

YOURS_PATH = "yours"  # the address of its page


def checked_file() -> Path | None:
    """None where the app was started without one, or serves a class."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--check", type=Path)
    file = parser.parse_known_args(sys.argv[1:])[0].check
    return None if lan.class_address() else file
