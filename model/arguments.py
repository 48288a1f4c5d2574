"""The arguments of a command."""

import argparse


def parser_of(command: str, doc: str) -> argparse.ArgumentParser:
    """A parser for `headlight COMMAND`, whose module docstring is the help text: `--help`
    begins with the first paragraph of `doc` and ends with the others."""
    about, _, more = doc.partition("\n\n")
    return argparse.ArgumentParser(
        prog=f"headlight {command}",
        description=about,
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
