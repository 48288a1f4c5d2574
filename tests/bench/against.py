"""python -m tests.bench --against COMMIT: rows of this commit and of another in turns, each from
its own files, and by how much the ratio of each has changed."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import ROOT

ROUNDS = 3
BASELINE = Path(__file__).with_name("baseline.txt")  # a commit that acts may not be slower than


def against(commit: str, only: str) -> str:
    """A table: row, its ratio at `commit` and now, medians of rounds, and now ÷ then."""
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "old"
        subprocess.run(["git", "worktree", "add", "--detach", old, commit], cwd=ROOT, check=True)
        try:
            ratios = [(_ratios(old, only), _ratios(ROOT, only)) for _ in range(ROUNDS)]
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", old], cwd=ROOT, check=True)
    lines = [f"{'':34}{'then':>8}{'now':>8}{'now ÷ then':>12}"]
    for name in ratios[0][1]:
        sides = [[both[side][name] for both in ratios if name in both[side]] for side in (0, 1)]
        if all(sides):
            then, now = map(statistics.median, sides)
            lines.append(f"{name:34}{then:8.3f}{now:8.3f}{now / then:12.3f}")
    return "\n".join(lines)


def _ratios(root: Path, only: str) -> dict[str, float]:
    """Row → its ratio, of the files below `root`."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "bench.json"
        command = [sys.executable, "-m", "tests.bench", "--only", only, "--json", str(found)]
        # what is installed is this commit
        subprocess.run(command, cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, check=False)
        rows = json.loads(found.read_text(encoding="utf-8"))["rows"]
    return {row["name"]: row["ratio"] for row in rows}
