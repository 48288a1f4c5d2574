"""A class that follows its teacher: from the teacher's act to each student's picture."""

import asyncio
import json
import random
import statistics
import time
from collections.abc import Awaitable
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.load.report import Bar, conclude, percentile
from tests.load.student import EXAMPLES
from tests.load.tab import Tab

PICTURE = "stage_run"
PATIENCE = 60  # seconds


class Member:
    """Somebody in a room, in a tab of their own, with cookies as a browser has them."""

    def __init__(self, address: str):
        self.address, self.tab, self.cookies = address, Tab(address), {}
        self.led, self.painted, self.errors = "", {}, []  # view → when it was painted
        self.busy, self.tasks = asyncio.Lock(), set()

    async def ask(self, method: str, path: str):
        """Status, headers and the reader of the body."""
        parts = urlsplit(self.address)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nCookie: {cookie}\r\n"
            "Accept: text/event-stream\r\nContent-Length: 0\r\n\r\n".encode()
        )
        status, headers = int((await reader.readline()).split()[1]), {}
        while line := (await reader.readline()).decode().strip():
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
            if name.lower() == "set-cookie":
                key, _, text = value.partition(";")[0].partition("=")
                self.cookies[key] = text
        return status, headers, reader, writer

    async def come(self, path: str, method: str = "GET") -> None:
        """Through an address of the room."""
        status, headers, _, writer = await self.ask(method, path)
        writer.close()
        assert status == 303, status
        where, _, query = headers["location"].lstrip("/").partition("?")
        self.tab.path, self.tab.parameters = where, parse_qs(query)
        self.tab.cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        self.tab._eat = lambda cookie: None
        self.errors += (await self.tab.open()).exceptions

    async def follow(self, code: str) -> None:
        """Until cancelled."""
        _, _, reader, writer = await self.ask("GET", f"/room/{code}/events?following=true")
        try:
            while line := (await reader.readline()).decode():
                view = json.loads(line[6:]).get("view") if line.startswith("data: {") else ""
                if view and view != self.led:
                    self.led = view
                    self.start(self.go())
        finally:
            writer.close()

    def start(self, work: Awaitable) -> None:
        self.tasks.add(asyncio.ensure_future(work))

    async def go(self) -> None:
        """To the newest view, once no run is under way."""
        async with self.busy:
            view, started = self.led, time.perf_counter()
            if view in self.painted:
                return
            page = await self.tab.go(view)
            self.errors += page.exceptions
            self.painted[view] = started + page.arrived.get(PICTURE, page.seconds)


async def _lesson(address: str, clients: int, acts: int) -> dict:
    chance = random.Random(20)
    words = (EXAMPLES / "en-fr.txt").read_text(encoding="utf-8").split()
    teacher, students = Member(address), [Member(address) for _ in range(clients)]
    await teacher.come("/room", "POST")
    code = teacher.tab.parameters["room"][0]
    await teacher.tab.tell("stage", "choose", {"drawer": True})
    alone = [
        (await teacher.tab.type("source", " ".join(chance.choices(words, k=8)))) for _ in "123"
    ]
    for i in range(0, clients, 6):
        await asyncio.gather(*(s.come(f"/room/{code}") for s in students[i : i + 6]))
    one = []
    for _ in range(5):
        query = urlencode({"source": " ".join(chance.choices(words, k=8)), "room": code})
        one.append((await students[0].tab.go(f"/?{query}")).seconds)
    for student in students:
        student.start(student.follow(code))
    await teacher.tab.switch("follow_me_off")
    await asyncio.sleep(8)
    delays, own = [], []
    for i in range(acts):
        began = time.perf_counter()
        for student in students:
            student.painted.clear()
        sentence = " ".join(chance.choices(words, k=8))
        page = await (
            teacher.tab.switch("causal") if i % 2 else teacher.tab.type("source", sentence)
        )
        own.append(page.arrived.get(PICTURE, page.seconds))
        while not all(student.painted for student in students):
            assert time.perf_counter() < began + PATIENCE, [s.errors for s in students]
            await asyncio.sleep(0.01)
        delays += [max(student.painted.values()) - began for student in students]
        await asyncio.sleep(1)
        assert len({student.led for student in students}) == 1
    errors = [error for member in (teacher, *students) for error in member.errors]
    for member in (teacher, *students):
        for task in member.tasks:
            task.cancel()
        await member.tab.close()
    before = statistics.median(page.arrived.get(PICTURE, page.seconds) for page in alone)
    return {
        "students' picture, p50": statistics.median(delays),
        "students' picture, p95": percentile(delays, 0.95),
        "one follower's run": statistics.median(one),
        "teacher's picture, p50": statistics.median(own),
        "teacher's picture alone": before,
        "errors": errors[:5],
    }


def measure(served, clients: int, replicas: int, acts: int, file: Path | None) -> int:
    """The bar is that of the queue: each process runs its followers one after the other."""
    with served as server:
        found = asyncio.run(_lesson(server.address, clients, acts))
    most = 1.3 * clients / replicas * found["one follower's run"] + 0.2
    bars = [
        Bar("students' picture, p95", found["students' picture, p95"], most),
        Bar("errors", len(found["errors"]), 0),
    ]
    return conclude(bars, found, file)
