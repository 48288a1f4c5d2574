"""The arguments of a command."""

import argparse

from headlight.model.messages import LONGEST_MESSAGE, short


class Parser(argparse.ArgumentParser):
    """One whose messages are short, whatever was typed."""

    def error(self, message: str):
        super().error(short(message, LONGEST_MESSAGE))


def parser_of(command: str, doc: str) -> Parser:
    """A parser for `headlight COMMAND`, whose module docstring is the help text: `--help`
    begins with the first paragraph of `doc` and ends with the others."""
    about, _, more = doc.partition("\n\n")
    return Parser(
        prog=f"headlight {command}",
        description=about,
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
