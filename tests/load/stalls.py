"""A few who ask for the worst that a page allows, and how long two others wait beside them."""

import asyncio
import itertools
import random
import statistics
import time
from contextlib import AbstractContextManager
from pathlib import Path

from tests.load import report, server
from tests.load.report import Bar
from tests.load.student import EXAMPLES, LATE, Record, Student
from tests.load.tab import Tab

MODEL, SEED = "en-de", 20
WORDS, LETTERS = 370, 600  # of a text that is still read
ACTS = {  # what is asked for → page, parameters of its address
    "influence": ("alignment", {"aligned_by": ["Influence"]}),
    "attribution": ("attribution", {}),
    "ablation": ("ablation", {}),
    "ten beams": ("generate", {"how": ["Beam search"], "branches": ["10"]}),
    "long word": ("generate", {}),
    "heads": ("heads", {"measured_on": ["This sentence"]}),
    "examples": ("heads", {"measured_on": ["Example sentences"]}),
    "sentences": ("heads", {"heads_as": ["Sentences"]}),
    "residual stream": ("residual", {}),
    "export": ("take-away", {}),
}
CHANGED = ("examples", "sentences")  # of texts that all askers share: a change is their own
EXPORT = "-evidence.zip"  # it holds all other files
ASKERS, OTHERS, PAUSE = (1, 2, 4), 2, 0.5  # how many; seconds between two sentences of the others
SLOWEST, MEDIAN, ENDED = 2.0, 0.5, 1.0  # seconds, the bars
IDLE, LOOK = 0.3, 0.25  # of one core, and seconds over which that is measured


class CannotAsk(AssertionError):
    """The page does not do what is asked: its times would say nothing."""


async def ask(address: str, act: str, chance: random.Random) -> None:
    """One asker: the same again and again, each time of a text that nobody has asked for. Raises
    CannotAsk."""
    page, parameters = ACTS[act]
    words = (EXAMPLES / f"{MODEL}.txt").read_text(encoding="utf-8").split()
    while True:
        text = " ".join(chance.choices(words, k=WORDS))
        if act == "long word":
            text = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=LETTERS))
        tab = Tab(address)
        tab.path = page
        tab.parameters = {"model": [MODEL], "source": [text], **parameters}
        if act in CHANGED:
            line = f"encoder.1.1=temperature:{chance.uniform(0.5, 2)}"
            tab.parameters["changes"] = [line]
        try:
            opened = await tab.open()
            if wrong := opened.exceptions + opened.errors:
                raise CannotAsk(" ".join(wrong))
            await tab.repeat()
            if act == "export":
                (button,) = (key for key in tab.deferred if key.endswith(EXPORT))
                if not await tab.download(button):
                    raise CannotAsk("the file is empty")
        finally:
            await tab.close()


async def type_short(student: Student, seconds: float) -> list[float]:
    """Seconds until each of their answers."""
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(student.chance.uniform(0, 2 * PAUSE))
        start = time.monotonic()
        await asyncio.wait_for(student.type(), LATE)
        times.append(time.monotonic() - start)
    return times


async def until_idle(running: server.Server) -> float:
    """Seconds until the server computes nothing any more."""

    def used() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in running.processes())

    start = time.monotonic()
    while time.monotonic() < start + LATE:
        before = used()
        await asyncio.sleep(LOOK)
        if used() - before < IDLE * LOOK:
            return time.monotonic() - start - LOOK
    return LATE


async def scenario(running: server.Server, act: str, askers: int, seconds: float):
    """The others' times, their errors, and how long the work went on once its askers had left."""
    chance = random.Random(f"{SEED} {act} {askers}")
    students = [
        Student(Tab(running.address), MODEL, random.Random(chance.random()), Record())
        for _ in range(OTHERS)
    ]
    for student in students:
        student.sentence = lambda one=student: " ".join(one.chance.choices(one.words, k=6))
        await student.open()
    asking = [
        asyncio.create_task(ask(running.address, act, random.Random(chance.random())))
        for _ in range(askers)
    ]
    await asyncio.sleep(1)  # the work has begun
    times = await asyncio.gather(*(type_short(student, seconds) for student in students))
    failed = [task.exception() for task in asking if task.done()]
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    ended = await until_idle(running)
    for student in students:
        await student.tab.close()
    errors = [error for student in students for error in student.record.errors]
    return list(itertools.chain(*times)), errors + list(map(repr, failed)), ended


def measure(
    served: AbstractContextManager, seconds: float, file: Path | None, acts: list[str]
) -> int:
    """Each act by one, two and four askers."""
    rows, errors = {}, []
    with served as running:
        asyncio.run(_opened_once(running.address))
        for act in acts:
            for askers in ASKERS:
                times, failed, ended = asyncio.run(scenario(running, act, askers, seconds))
                errors += [f"{act}, {askers} askers: {error}" for error in failed]
                rows[f"{act}, {askers}"] = row = {
                    "answers": len(times),
                    "median": statistics.median(times),
                    "slowest": max(times),
                    "ended": ended,
                }
                print(
                    f"{act:16} {askers} askers  {row['answers']:4} answers  "
                    f"median {row['median']:6.2f} s  slowest {row['slowest']:6.2f} s  "
                    f"ended after {ended:5.2f} s",
                    flush=True,
                )
    print(*errors, sep="\n")
    bars = [
        Bar("errors", len(errors), 0),
        Bar("slowest answer, s", max(row["slowest"] for row in rows.values()), SLOWEST),
        Bar("largest median, s", max(row["median"] for row in rows.values()), MEDIAN),
        Bar("work of those who left, s", max(row["ended"] for row in rows.values()), ENDED),
    ]
    return report.conclude(bars, {"rows": rows, "errors": errors}, file)


async def _opened_once(address: str) -> None:
    tab = Tab(address)
    await tab.open()
    await tab.close()
