"""What a server holds after many sentences, many sessions and many reruns."""

import asyncio
import random
import statistics
from contextlib import AbstractContextManager
from pathlib import Path

from tests.load.check import mistakes
from tests.load.report import Bar, conclude, percentile
from tests.load.server import Server
from tests.load.student import Record, Student
from tests.load.tab import Tab

TABS = 4  # that type at once
WARM = 200  # sentences, or a few minutes of a class
EVERY = 20  # sentences memory is looked at
SEED = 20


def _student(server: Server, number: int) -> Student:
    return Student(Tab(server.address), "en-de", random.Random(SEED + number), Record())


def sentences(served: AbstractContextManager, count: int, file: Path | None) -> int:
    """Memory after `count` distinct sentences ÷ after 200."""
    megabytes, records, samples = {}, [], []

    async def typed(server: Server) -> None:
        students = [_student(server, number) for number in range(TABS)]
        for student in students:
            await student.open()
        for done in range(TABS, count + 1, TABS):
            await asyncio.gather(*(student.type() for student in students))
            if done % EVERY == 0:
                samples.append(server.memory())
            if done % WARM == 0:
                # What the garbage collector has not yet taken comes and goes.
                megabytes[done] = statistics.median(samples[-WARM // (2 * EVERY) :])
                print(f"{done:6} sentences  {megabytes[done]:8.1f} MB", flush=True)
        records.extend(student.record for student in students)
        for student in students:
            await student.tab.close()

    with served as server:
        asyncio.run(typed(server))
    found = [text for record in records for text in (*record.errors, *mistakes(record.answers))]
    print(*found[:10], sep="\n")
    bars = [
        Bar("errors and wrong answers", len(found), 0),
        Bar(f"MB after {count} sentences ÷ after {WARM}", megabytes[count] / megabytes[WARM], 1.05),
    ]
    return conclude(bars, {"megabytes": megabytes}, file)


def sessions(served: AbstractContextManager, count: int, file: Path | None) -> int:
    """Memory after `count` sessions came and went ÷ before."""
    megabytes, errors = {}, []

    async def came_and_went(server: Server, numbers) -> None:
        for number in numbers:
            student = _student(server, number)
            await student.open()
            for _ in range(3):
                await student.act()
            errors.extend(student.record.errors)
            await student.tab.close()

    with served as server:
        # What is read, compiled and cached for anybody is there already.
        asyncio.run(came_and_went(server, range(1000, 1000 + WARM // TABS)))
        for name, numbers in (("before", ()), ("after", range(count))):
            asyncio.run(came_and_went(server, numbers))
            megabytes[name] = server.memory()
            print(f"{name:8} {megabytes[name]:8.1f} MB", flush=True)
    print(*errors[:10], sep="\n")
    bars = [
        Bar("errors", len(errors), 0),
        Bar(f"MB after {count} sessions ÷ before", megabytes["after"] / megabytes["before"], 1.1),
    ]
    return conclude(bars, {"megabytes": megabytes}, file)


def reruns(served: AbstractContextManager, count: int, file: Path | None) -> int:
    """Memory after `count` reruns ÷ after the first twentieth, and how long the last ones take."""
    part, megabytes, seconds = max(count // 20, 1), {}, []

    async def run(server: Server) -> None:
        student = _student(server, 0)
        await student.open()
        for done in range(1, count + 1):
            await student.take("rerun", student.tab.run())
            seconds.append(student.page.seconds)
            student.record.answers.clear()
            if done % part == 0:
                megabytes[done] = server.memory()
                print(
                    f"{done:6} reruns  {megabytes[done]:8.1f} MB  "
                    f"p95 {percentile(seconds[-part:], 0.95):.3f} s",
                    flush=True,
                )
        assert not student.record.errors, student.record.errors
        await student.tab.close()

    with served as server:
        asyncio.run(run(server))
    first, last = (percentile(some, 0.95) for some in (seconds[:part], seconds[-part:]))
    bars = [
        Bar(f"MB after {count} reruns ÷ after {part}", megabytes[count] / megabytes[part], 1.05),
        Bar(f"p95 of the last {part} reruns ÷ of the first", last / first, 1.2),
    ]
    return conclude(bars, {"megabytes": megabytes, "p95": [first, last]}, file)
