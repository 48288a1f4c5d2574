"""A class at once: many students on one server, and as many on an empty page."""

import asyncio
import random
from contextlib import AbstractContextManager
from pathlib import Path

from tests.load import report, server
from tests.load.browser import Browser
from tests.load.check import mistakes
from tests.load.report import ALL, Bar, by_action, table, together
from tests.load.student import Reader, Record, Student, attend
from tests.load.tab import Tab

EMPTY = "tests/bench/empty_page.py"
ARRIVAL = 20.0  # seconds in which all arrive
MODEL = "en-de"
SEED = 20


def crowd(address: str, clients: int, seconds: float, is_app: bool) -> Record:
    """What happens to a class on a server, one of them with a real browser."""
    arrival, chance = min(ARRIVAL, seconds / 3), random.Random(SEED)
    browser = Browser(address, seconds, is_app, random.Random(SEED))

    def client(chance: random.Random):
        def make(record: Record):
            if is_app:
                return Student(Tab(address), MODEL, chance, record)
            return Reader(Tab(address), chance, record)

        return attend(make, seconds, arrival, chance)

    async def everybody():
        others = [client(random.Random(chance.random())) for _ in range(clients - 1)]
        return await asyncio.gather(*others)

    browser.start()
    records = asyncio.run(everybody())
    browser.join()
    return together([*records, browser.record])


def measure(
    served: AbstractContextManager, clients: int, seconds: float, bar: float, file: Path | None
) -> int:
    """A class on the app, and one on an empty page."""
    records, memory = {}, 0.0
    for name, context in (("app", served), ("empty", server.script(EMPTY))):
        with context as running:
            asyncio.run(_opened_once(running.address))
            records[name] = crowd(running.address, clients, seconds, name == "app")
            memory = memory or running.memory()
    app, empty = (by_action(record) for record in records.values())
    answers = records["app"].answers
    found, errors = mistakes(answers), [e for one in records.values() for e in one.errors]
    print(table(app, empty))
    print(f"{len(answers)} answers checked; the app holds {memory:,.0f} MB")
    print(*errors, *found, sep="\n")
    bars = [
        Bar("errors", len(errors), 0),
        Bar("wrong answers", len(found), 0),
        Bar("p95 of all actions ÷ the empty page's", app[ALL]["p95"] / empty[ALL]["p95"], bar),
    ]
    details = {"clients": clients, "seconds": seconds, "app": app, "empty": empty}
    details |= {"checked": len(answers), "errors": errors, "wrong": found, "megabytes": memory}
    return report.conclude(bars, details, file)


async def _opened_once(address: str) -> None:
    """What is read and compiled for the first visitor, before the class comes."""
    tab = Tab(address)
    await tab.open()
    await tab.close()
