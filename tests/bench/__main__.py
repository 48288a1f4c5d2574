"""python -m tests.bench [--only NAME] [--json FILE]: measure every bar, or those named so."""

import argparse
import importlib
import json
import pkgutil
import sys
from pathlib import Path

import tests.bench
from model.memory import keep_freed_memory
from tests.bench.harness import Row, measure, report, table


def rows() -> list[Row]:
    """ROWS of every bench_*.py beside this file."""
    names = (module.name for module in pkgutil.iter_modules(tests.bench.__path__))
    found = (importlib.import_module(f"tests.bench.{n}") for n in names if n.startswith("bench_"))
    return [row for module in found for row in module.ROWS]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", default="", metavar="NAME", help="rows whose name holds this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    args = parser.parse_args()
    chosen = [row for row in rows() if args.only in row.name]
    if not chosen:
        parser.error(f"no row is called {args.only!r}; there are {[r.name for r in rows()]}")
    keep_freed_memory()  # as training does; for both sides of every row alike
    results = [measure(row) for row in chosen]
    print(table(results))
    if args.json:
        text = json.dumps(report(results), indent=2, ensure_ascii=False)
        args.json.write_text(text + "\n", encoding="utf-8")
    return 0 if all(result.passed for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
