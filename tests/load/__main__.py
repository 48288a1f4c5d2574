"""python -m tests.load WHAT [--clients N] [--seconds N] [--count N] [--json FILE]

class      as many clients at once on the app, then on an empty page
sentences  memory after so many distinct sentences
sessions   memory after so many sessions came and went
reruns     memory and times after so many reruns"""

import argparse
import sys
from pathlib import Path

from tests.load import classroom, memory, server

APP = "app/main.py"


def class_(args) -> int:
    served = server.script(APP)
    return classroom.measure(served, args.clients or 30, args.seconds or 180, 1.5, args.json)


WHAT = {
    "class": class_,
    "sentences": lambda args: memory.sentences(server.script(APP), args.count or 2000, args.json),
    "sessions": lambda args: memory.sessions(server.script(APP), args.count or 60, args.json),
    "reruns": lambda args: memory.reruns(server.script(APP), args.count or 20_000, args.json),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.load",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("--clients", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--count", type=int)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    args = parser.parse_args()
    return WHAT[args.what](args)


if __name__ == "__main__":
    sys.exit(main())
