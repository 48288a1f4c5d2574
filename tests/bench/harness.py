"""A bar is a ratio: our time over that of what we compare with, the two run in turns in one
process. Times differ from machine to machine; ratios hold."""

import gc
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version

import torch

from tests import devices

Run = Callable[[], object]  # may return its seconds, a float, by a clock of its own
Sides = Callable[[], tuple[Run, Run]]


@dataclass(frozen=True)
class Row:
    """One bar. `sides()` prepares and returns what is timed: ours, theirs."""

    name: str
    condition: str
    bar: float  # ours ÷ theirs may be at most this
    sides: Sides
    pairs: int = 30
    warm_up: int = 3
    cpu_only: bool = False  # as the rows are that drive a browser


@dataclass(frozen=True)
class Result:
    """`ratio` is the median over pairs of ours ÷ theirs; seconds are each side's median."""

    name: str
    condition: str
    unit: str
    ratio: float
    bar: float
    pairs: int
    ours_seconds: float
    theirs_seconds: float

    @property
    def passed(self) -> bool:
        return self.ratio <= self.bar


def measure(row: Row) -> Result:
    """Time both sides of a row in turns, each first in every other pair."""
    sides = row.sides()
    for _ in range(row.warm_up):
        for run in sides:
            run()
    gc.collect()
    pairs = [_pair(sides, first=i % 2) for i in range(row.pairs)]
    ours, theirs = zip(*pairs, strict=True)
    return Result(
        name=row.name,
        condition=row.condition,
        unit="ours ÷ theirs",
        ratio=statistics.median(o / t for o, t in pairs),
        bar=row.bar,
        pairs=row.pairs,
        ours_seconds=statistics.median(ours),
        theirs_seconds=statistics.median(theirs),
    )


def _pair(sides: tuple[Run, Run], first: int) -> list[float]:
    seconds = [0.0, 0.0]
    for side in (first, 1 - first):
        start = time.perf_counter()
        measured = sides[side]()
        devices.synchronize()
        elapsed = time.perf_counter() - start
        seconds[side] = measured if isinstance(measured, float) else elapsed
    return seconds


def report(results: list[Result]) -> dict:
    """What --json writes: the rows, and what they ran on."""
    return {
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in ("torch", "streamlit", "tokenizers")},
        },
        "threads": torch.get_num_threads(),
        "device": str(devices.current()),
        "rows": [{**asdict(result), "pass": result.passed} for result in results],
    }


def table(results: list[Result]) -> str:
    """The same to read."""
    width = max(len(result.name) for result in results)
    lines = [f"{'':{width}}   ratio     bar           ours     theirs"]
    for r in results:
        verdict = "ok  " if r.passed else "OVER"
        times = f"{r.ours_seconds * 1e3:7.1f} ms {r.theirs_seconds * 1e3:7.1f} ms"
        lines.append(f"{r.name:{width}}  {r.ratio:6.3f}  {r.bar:6.2f}  {verdict}  {times}")
    return "\n".join(lines)
