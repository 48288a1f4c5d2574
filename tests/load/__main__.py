"""python -m tests.load WHAT [--clients N] [--seconds N] [--count N] [--replicas N] [--json FILE]

class      30 clients at once on the app for 3 minutes, then on an empty page; 60 on replicas
room       30 students follow a teacher in one process, 60 in two
sentences  memory and times after 2,000 distinct sentences
sessions   the same after 60 sessions came and went
reruns     the same after 20,000 reruns"""

import argparse
import sys
from pathlib import Path

from tests.load import classroom, memory, room, server


def class_(args) -> int:
    clients = args.clients or (30 if args.replicas == 1 else 60)
    bar = 1.5 if args.replicas == 1 else 2.0
    served = server.app(args.replicas)
    return classroom.measure(served, clients, args.seconds or 180, bar, args.json)


def room_(args) -> int:
    clients = args.clients or (30 if args.replicas == 1 else 60)
    served = server.app(args.replicas)
    return room.measure(served, clients, args.replicas, args.count or 12, args.json)


WHAT = {"class": class_, "room": room_}
COUNTS = {"sentences": 2000, "sessions": 60, "reruns": 20_000}
WHAT |= {
    what: lambda args, what=what: memory.measure(
        server.app(), what, args.count or COUNTS[what], args.json
    )
    for what in COUNTS
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
    parser.add_argument("--count", type=int, help="answers, sentences, sessions or reruns")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    args = parser.parse_args()
    return WHAT[args.what](args)


if __name__ == "__main__":
    sys.exit(main())
