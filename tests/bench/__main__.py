"""python -m tests.bench [--only NAME] [--device DEVICE] [--json FILE]: measure every bar, or those
named so. With --where NAME, into what one act in the browser falls; with --against COMMIT, this
commit and another in turns."""

import argparse
import importlib
import json
import pkgutil
import sys
import traceback
from pathlib import Path

import tests.bench
from headlight.model.memory import keep_freed_memory
from tests import devices
from tests.bench.against import BASELINE, against
from tests.bench.harness import Row, measure, report, table
from tests.bench.where import where


def rows() -> list[Row]:
    """ROWS of every bench_*.py beside this file."""
    names = (module.name for module in pkgutil.iter_modules(tests.bench.__path__))
    found = (importlib.import_module(f"tests.bench.{n}") for n in names if n.startswith("bench_"))
    return [row for module in found for row in module.ROWS]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", default="", metavar="NAME", help="rows whose name holds this")
    parser.add_argument("--where", metavar="NAME", help="what happens when, in this row")
    parser.add_argument(
        "--against",
        metavar="COMMIT",
        nargs="?",
        const=BASELINE.read_text(encoding="utf-8").strip(),
        help="another commit in turns; without a name that of baseline.txt",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:1, …")
    args = parser.parse_args()
    if args.against:
        print(against(args.against, args.only))
        return 0
    args.only = args.where or args.only
    chosen = [row for row in rows() if args.only in row.name]
    if not chosen:
        parser.error(f"no row is called {args.only!r}; there are {[r.name for r in rows()]}")
    try:
        device = devices.named(args.device)
    except ValueError as error:
        parser.error(str(error))
    if not devices.available(device):
        parser.error(f"--device {device}: PyTorch sees none here")
    devices.use(device)
    if device.type != "cpu":
        left = [row.name for row in chosen if row.cpu_only]
        chosen = [row for row in chosen if not row.cpu_only]
        print(f"measured on the CPU alone, and left out: {', '.join(left) or 'none'}")
        if not chosen:
            return 0
    if args.where:
        print(where(min(chosen, key=lambda row: row.name != args.where)))
        return 0
    keep_freed_memory()  # as training does; for both sides of every row alike
    results, broken = [], []
    for row in chosen:
        try:
            results.append(measure(row))
        except Exception:
            traceback.print_exc()
            broken.append(row.name)
    if results:
        print(table(results))
    if broken:
        print(f"not measured: {', '.join(broken)}")
    if args.json:
        text = json.dumps(report(results), indent=2, ensure_ascii=False)
        args.json.write_text(text + "\n", encoding="utf-8")
    return 0 if not broken and all(result.passed for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
