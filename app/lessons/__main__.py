"""headlight lessons check FILE, and headlight lessons report FILES --out grades.csv."""

import argparse
import io
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from headlight.app.lessons.answers import Marker, report
from headlight.app.lessons.check import check
from headlight.app.lessons.lesson import SHIPPED_LESSONS, load_folder
from headlight.app.lessons.lesson_file import LONGEST_PATH, LessonError
from headlight.app.server.arguments import print_anywhere
from headlight.model.arguments import Parser
from headlight.model.checkpoint import load
from headlight.model.files import replace_file
from headlight.model.messages import reason, short
from headlight.model.surveys.tables import BYTE_ORDER_MARK


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 if all is well, else 1."""
    print_anywhere()
    parser = Parser(prog="headlight lessons", description="Lessons and answers.")
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("check", help="list the mistakes in lessons, with line numbers")
    checking.add_argument("path", type=Path, metavar="FILE|FOLDER")
    reporting = commands.add_parser("report", help="mark answer files again")
    reporting.add_argument("files", type=Path, nargs="+", metavar="FILE")
    reporting.add_argument("--out", type=Path, required=True, metavar="CSV")
    reporting.add_argument("--lessons", type=Path, metavar="FOLDER", help="your own lessons")
    options = parser.parse_args(arguments)
    models = cache(load)
    if options.command == "check":
        return _check(options.path, models)
    return _report(options, models)


def _check(path: Path, models) -> int:
    try:
        lines, errors = check(path, models)
    except LessonError as error:
        lines, errors = [], [error]
    for line in lines:
        print(line)
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


def _report(options: argparse.Namespace, models) -> int:
    lessons, errors = [], []
    for folder in filter(None, (SHIPPED_LESSONS, options.lessons)):
        of_folder, wrong = load_folder(folder)
        lessons, errors = lessons + of_folder, errors + wrong
    for error in errors:
        print(error, file=sys.stderr)
    table, path = io.StringIO(newline=""), short(options.out, LONGEST_PATH)
    counted = report(options.files, Marker(lessons, models), table)
    try:
        replace_file(options.out, BYTE_ORDER_MARK + table.getvalue())
    except OSError as error:
        print(f"{path} cannot be written: {reason(error)}.", file=sys.stderr)
        return 1
    print(f"{counted} of {len(options.files)} files valid. See {path}.")
    return 0 if counted == len(options.files) else 1


if __name__ == "__main__":
    sys.exit(main())
