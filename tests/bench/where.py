"""python -m tests.bench --where NAME: into what an act of the browser's rows falls, in milliseconds
from the message that asks for it; medians. One server, and what else the machine does."""

import statistics
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

from tests.bench import in_browser
from tests.bench.harness import Row
from tests.conftest import ROOT

TIMES, WARM_UP = 15, 3
# When the browser sent and received, and how much.
HOOK = """
  const Plain = window.WebSocket, now = () => performance.timeOrigin + performance.now();
  window.traffic = [];
  window.WebSocket = class extends Plain {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", ({ data }) => traffic.push([now(), data.byteLength]));
    }
    send(data) {
      traffic.push([now(), -1]);
      return super.send(data);
    }
  };
"""
MARKS = """() => performance.getEntriesByType("mark").filter(({ name }) => name.endsWith("painted"))
  .map(({ name, startTime }) => [name, performance.timeOrigin + startTime])"""


def settings() -> tuple[str, ...]:
    """Streamlit's, of the app, which finds them beside its script."""
    file = ROOT / "app" / ".streamlit" / "config.toml"
    return tuple(
        f"--{part}.{name}={str(value).lower()}"
        for part, values in tomllib.loads(file.read_text(encoding="utf-8")).items()
        for name, value in values.items()
        if not isinstance(value, dict)
    )


def where(row: Row) -> str:
    """A table of what happened when. Raises ValueError for a row that opens no page."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.tsv"
        log.touch()
        script = "tests/bench/timed_app.py"
        in_browser.SERVED.update(script=script, settings=settings(), WHERE=str(log))
        in_browser.SCRIPTS.append(HOOK)
        act, _ = row.sides()
        for _ in range(WARM_UP):
            act()
        if not in_browser.OPENED:
            raise ValueError(f"{row.name} opens no page")
        found = [_once(act, log) for _ in range(TIMES)]
    lines = {
        name: statistics.median(one[name] for one in found if name in one)
        for name in {name: None for one in found for name in one}
    }
    in_order = sorted(lines.items(), key=lambda line: line[1])
    return "\n".join(f"{time:9.1f}  {name}" for name, time in in_order)


def _once(act: Callable, log: Path) -> dict[str, float]:
    page = in_browser.OPENED[-1]
    page.evaluate("() => { traffic.length = 0; }")
    log.write_text("")
    act()
    traffic = page.evaluate("() => traffic")
    asked = next(at for at, size in traffic if size < 0)
    came = [(at, size) for at, size in traffic if size >= 0]
    times = {
        "browser: first message": came[0][0],
        "browser: largest message": max(came, key=lambda one: one[1])[0],
        "browser: last message": came[-1][0],
    }
    times |= {f"browser: {name}": at for name, at in page.evaluate(MARKS) if at > asked}
    for line in log.read_text().splitlines():
        at, name = line.split("\t")
        times.setdefault(name, float(at) * 1000)
    return {name: at - asked for name, at in times.items()} | {
        "messages (a number)": len(came),
        "kB (a number)": sum(size for _, size in came) / 1000,
    }
