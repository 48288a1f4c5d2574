"""The sites whose pages may show the app in a frame: `--embed-in https://moodle.example`."""

import argparse
import re
import sys
from functools import cache

FLAG = "--embed-in"
HELP = "a site whose pages may show the app in a frame; may be given several times"
LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
ORIGIN = re.compile(rf"https?://(?:{LABEL}(?:\.{LABEL})*|\[[0-9a-f:.]+\])(?::\d{{1,5}})?")


def origin(text: str) -> str:
    """The origin that a user names, for a content security policy. Raises ArgumentTypeError for
    anything else: a path would not be compared, and * would let everybody in."""
    found = text.strip().removesuffix("/").lower()
    if not ORIGIN.fullmatch(found):
        raise argparse.ArgumentTypeError(
            f"{text[:80]!a} is not a site. Write http:// or https:// and the host, such as "
            "https://moodle.example"
        )
    return found


def add_flag(parser: argparse.ArgumentParser) -> None:
    """As `embed_in`, a list."""
    parser.add_argument(FLAG, type=origin, action="append", default=[], metavar="ORIGIN", help=HELP)


@cache
def ancestors() -> tuple[str, ...]:
    """Those with which this process was started. Exits with a message if one is not an origin."""
    parser = argparse.ArgumentParser(prog="headlight", allow_abbrev=False, usage=argparse.SUPPRESS)
    add_flag(parser)
    return tuple(parser.parse_known_args(sys.argv[1:])[0].embed_in)
