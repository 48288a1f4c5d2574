"""What a load test says in the end."""

import json
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.load.student import Record

ALL, PAINTED = "all actions", "painted"


@dataclass(frozen=True)
class Bar:
    """A number that may be `most` at most."""

    name: str
    value: float
    most: float

    @property
    def passed(self) -> bool:
        return self.value <= self.most

    def __str__(self) -> str:
        return (
            f"{'ok  ' if self.passed else 'OVER'}  {self.value:8.3f} ≤ {self.most:g}  {self.name}"
        )


def percentile(values: list[float], share: float) -> float:
    """The smallest of the values that so large a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def together(records: Iterable[Record]) -> Record:
    """All of them as one."""
    whole = Record()
    for record in records:
        for action, times in record.times.items():
            whole.times.setdefault(action, []).extend(times)
        whole.answers += record.answers
        whole.errors += record.errors
    return whole


def by_action(record: Record) -> dict[str, dict[str, float]]:
    """Action → how often it was done, and its median and 95th percentile in seconds; last all that
    the clients did, their opening of the page among it."""
    everything = [s for name, times in record.times.items() if name != PAINTED for s in times]
    return {
        name: {"runs": len(times), "p50": statistics.median(times), "p95": percentile(times, 0.95)}
        for name, times in {**record.times, ALL: everything}.items()
        if times
    }


def table(app: dict, empty: dict) -> str:
    """Both sides and their ratio, where both have such an action."""
    lines = [
        f"{'':12}  {'the app':>20}   {'the empty page':>20}   ratio of",
        f"{'':12}  runs   p50 s   p95 s   runs   p50 s   p95 s    p50    p95",
    ]
    for name, ours in app.items():
        line = f"{name:12}  {ours['runs']:4}  {ours['p50']:6.3f}  {ours['p95']:6.3f}"
        if theirs := empty.get(name):
            line += f"   {theirs['runs']:4}  {theirs['p50']:6.3f}  {theirs['p95']:6.3f}"
            line += "".join(f"  {ours[key] / theirs[key]:5.2f}" for key in ("p50", "p95"))
        lines.append(line)
    return "\n".join(lines)


def conclude(bars: list[Bar], details: dict, file: Path | None) -> int:
    """Print the bars, write all figures into a file, and give the exit status."""
    print(*bars, sep="\n")
    if file:
        figures = {"bars": [asdict(bar) | {"pass": bar.passed} for bar in bars], **details}
        file.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if all(bar.passed for bar in bars) else 1
