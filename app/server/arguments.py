"""What the app is started with: the options that `headlight` and the bare
`streamlit run app/main.py -- …` have in common."""

import argparse
import re
import sys
from functools import cache
from io import TextIOWrapper
from pathlib import Path

EMBED_IN = "--embed-in"
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


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", type=Path, metavar="DIR", help="a folder with your own models")
    parser.add_argument(
        "--lessons", type=Path, metavar="FOLDER", help="a folder with your own lessons"
    )
    parser.add_argument(
        "--check",
        metavar="FILE[:NAME]",
        help="judge your parts of the Transformer, or your whole model, whenever you save",
    )
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        help="of the models: cpu, cuda, cuda:1 or mps; without it, the first GPU or else the CPU",
    )
    parser.add_argument(
        EMBED_IN,
        type=origin,
        action="append",
        default=[],
        metavar="ORIGIN",
        help="a site whose pages may show the app in a frame; may be given several times",
    )


def print_anywhere() -> None:
    """No program fails for a letter that its console lacks, such as one of Windows: ? stands for
    it. For the beginning of each program of ours."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # not of a test or a notebook
            stream.reconfigure(errors="replace")


def given(is_start: bool = False) -> argparse.Namespace:
    """What this process was started with, see `add_to`. At the start of the app alone, `--help`
    prints the options: any other program that imports the app has a help of its own. Exits with a
    message if a site is not an origin."""
    return _parsed(tuple(sys.argv[1:]), is_start)


@cache  # every response asks
def _parsed(texts: tuple[str, ...], has_help: bool) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="streamlit run app/main.py --", allow_abbrev=False, add_help=has_help
    )
    add_to(parser)
    return parser.parse_known_args(texts)[0]
