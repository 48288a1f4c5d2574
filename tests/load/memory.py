"""What a server holds after many sentences, sessions or reruns."""

import asyncio
import random
from contextlib import AbstractContextManager
from pathlib import Path

from tests.load.check import mistakes
from tests.load.report import Bar, conclude, percentile
from tests.load.server import Server
from tests.load.student import Record, Student
from tests.load.tab import Tab

MOST = {"sentences": 1.05, "sessions": 1.1, "reruns": 1.05}  # MB at the end ÷ after a tenth
SEED = 20


def measure(served: AbstractContextManager, what: str, count: int, file: Path | None) -> int:
    part, megabytes, seconds, wrong = max(count // 10, 1), {}, [], []

    async def came(server: Server, number: int) -> Student:
        student = Student(Tab(server.address), "en-de", random.Random(SEED + number), Record())
        await student.open()
        return student

    async def run(server: Server) -> None:
        student = await came(server, 0)
        for done in range(1, count + 1):
            if what == "sessions":
                await student.tab.close()
                student = await came(server, done)
            if what == "reruns":
                await student.take("rerun", student.tab.run())
            else:
                await (student.type if what == "sentences" else student.act)()
            seconds.append(student.page.seconds)
            wrong.extend([*student.record.errors, *mistakes(student.record.answers[-1:])])
            student.record.answers.clear()
            if done % part == 0:
                megabytes[done] = server.memory()
                print(f"{done:6} {what}  {megabytes[done]:8.1f} MB", flush=True)
        await student.tab.close()

    with served as server:
        asyncio.run(run(server))
    first, last = (percentile(some, 0.95) for some in (seconds[:part], seconds[-part:]))
    print(*wrong[:10], sep="\n")
    held = megabytes[count // part * part] / megabytes[part]
    bars = [
        Bar("errors and wrong answers", len(wrong), 0),
        Bar(f"MB after {count} {what} ÷ after {part}", held, MOST[what]),
        Bar(f"p95 of the last {part} ÷ of the first", last / first, 1.2),
    ]
    return conclude(bars, {"megabytes": megabytes, "p95": [first, last]}, file)
