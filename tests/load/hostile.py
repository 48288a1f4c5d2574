"""A class of thirty beside six clients that send as fast as they can, by turns with the same six as
students who keep to what is allowed: how long an honest student's click takes, and whether each act
of the teacher is done."""

import asyncio
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed

from headlight.app.server import room_stores, rooms
from tests.load import server
from tests.load.report import Bar, conclude, percentile
from tests.load.room import Member
from tests.load.tab import Page, Tab

CLASS, SIX = 30, 6
RATE = 100.0  # requests a second of the six together
PAUSE = 1.0, 3.0  # seconds between two clicks of a student
TURNS, SECONDS = 3, 20.0  # pairs of turns; of each
LATE = 60.0  # seconds; a student has long gone
CHOICES = "red", "car", "of"


class Pupil(Member):
    """A student with an open page, who answers now and then. `times`: seconds until each answer was
    drawn."""

    def __init__(self, address: str):
        super().__init__(address)
        self.times: list[float] = []
        self.mark, self.drawn, self.page = "", "", Page()
        self.tab.by_region = True

    async def answer(self, chance: random.Random) -> None:
        """Once, where something is asked."""
        if self.mark != self.drawn:
            self.drawn = self.mark
            await self.take(self.tab.run(self.region))
        keys = [key for key in self.page.elements if key.startswith("room_choice")]
        if keys:
            await self.take(self.tab.click(chance.choice(keys)))
            self.times.append(self.page.seconds)

    async def take(self, running) -> Page:
        self.page = await asyncio.wait_for(running, LATE)
        self.errors += self.page.exceptions + self.page.errors
        return self.page

    @property
    def region(self) -> str:
        return self.tab.fragments[self.tab.ids["room_events"]]

    async def act(self, chance: random.Random, until: float) -> None:
        while time.monotonic() + PAUSE[1] < until:
            await asyncio.sleep(chance.uniform(*PAUSE))
            await self.answer(chance)

    def hear(self, state: dict) -> None:
        self.mark = state.get("mark", self.mark)


class Flood(Pupil):
    """Clicks, connections and wrong codes, faster than anybody is answered."""

    sent = 0

    async def flood(self, per_second: float, until: float) -> None:
        """Of ten requests eight clicks, a line and a wrong code."""
        tasks, due = [asyncio.ensure_future(self.read())], time.monotonic()
        try:
            while due < until:
                await asyncio.sleep(due - time.monotonic())
                match self.sent % 10:
                    case 8:
                        tasks.append(asyncio.ensure_future(self.open_line()))
                    case 9:
                        tasks.append(asyncio.ensure_future(self.guess()))
                    case _:
                        await self.send()
                self.sent += 1
                due += 1 / per_second
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def send(self) -> None:
        """A click on an answer, or a run like any where nothing is asked."""
        message = BackMsg()
        message.rerun_script.query_string = self.tab.query
        message.rerun_script.page_script_hash = self.tab.page
        message.rerun_script.fragment_id = self.region
        message.rerun_script.widget_states.widgets.extend(self.tab.widgets.values())
        keys = [key for key in self.tab.ids if key.startswith("room_choice")]
        if keys:
            key = keys[-1 - self.sent % len(CHOICES)]
            message.rerun_script.widget_states.widgets.add(id=self.tab.ids[key], trigger_value=True)
        await self.tab.socket.send(message.SerializeToString())

    async def read(self) -> None:
        with suppress(ConnectionClosed):
            async for data in self.tab.socket:
                message = ForwardMsg.FromString(data)
                if message.WhichOneof("type") == "delta":
                    self.tab._draw(message, Page(), set(), 0.0)

    async def open_line(self) -> None:
        code = self.tab.parameters["room"][0]
        _, _, reader, writer = await self.ask("GET", f"/room/{code}/events?following=true")
        with closing(writer):
            while await reader.readline():
                pass

    async def guess(self) -> None:
        letters = "".join(random.choices(rooms.LETTERS, k=rooms.LENGTH))
        (await self.ask("GET", f"/room/{letters}"))[3].close()


class Teacher(Pupil):
    """Asks, closes, asks again, shows, and is done; `refused`: what was not done."""

    def __init__(self, address: str, state: Callable[[str], rooms.RoomState]):
        super().__init__(address)
        self.state, self.refused, self.acts = state, [], 0

    async def expect(self, act: str, running, done: Callable[[rooms.RoomState], bool]) -> None:
        page = await self.take(running)
        self.acts += 1
        if page.alerts or not done(self.state(self.tab.parameters["room"][0])):
            self.refused.append(f"{act}: {page.alerts}")

    async def lesson(self, until: float) -> None:
        rest = (until - time.monotonic() - 1) / 2
        asked = self.state(self.tab.parameters["room"][0]).asked
        await self.take(self.tab.switch(f"ask_{asked}"))
        await self.take(self.tab.type("poll_choices", "\n".join(CHOICES)))
        await self.expect("ask", self.tab.click("ask_poll"), lambda now: now.asked == asked + 1)
        await asyncio.sleep(rest)
        for act, state in (("close", "closed"), ("again", "open"), ("close", "closed")):
            await self.expect(
                act, self.tab.click(f"act_{act}"), lambda now, state=state: _is(now, state)
            )
            await asyncio.sleep(rest if act == "again" else 0)
        await self.expect("show", self.tab.click("act_show"), lambda now: _is(now, "shown"))
        await self.expect("done", self.tab.click("act_done"), lambda now: now.question is None)
        for name, leads in (("off", True), ("on", False)):
            await self.expect(
                f"follow me: {leads}",
                self.tab.give(f"follow_me_{name}", "bool_value", leads),
                lambda now, leads=leads: bool(now.view) == leads,
            )


def _is(room: rooms.RoomState, state: str) -> bool:
    return room.question is not None and room.question.state == state


async def _class(address: str, store: rooms.Store, seconds: float) -> dict:
    def state(code: str) -> rooms.RoomState:
        return rooms.state_after(store.since(code), code)

    chance = random.Random(7)
    teacher = Teacher(address, state)
    await teacher.come("/room", "POST")
    code = teacher.tab.parameters["room"][0]
    pupils = [Pupil(address) for _ in range(CLASS)]
    six = [Flood(address) for _ in range(SIX)]
    members = [*pupils, *six]
    for i in range(0, len(members), 6):
        await asyncio.gather(*(each.come(f"/room/{code}") for each in members[i : i + 6]))
    for each in (teacher, *members):
        each.start(each.follow(code))
    p95s: dict[str, list[float]] = {"allowed": [], "hostile": []}
    loads, sent, seen = [], [], 0
    for turn in range(2 * TURNS + 1):  # the first one warms up
        arm = "hostile" if turn and turn % 2 == 0 else "allowed"
        until = time.monotonic() + seconds
        for each in members:
            each.times.clear()
        before = sum(each.sent for each in six)
        acts = [each.act(random.Random(chance.random()), until) for each in pupils]
        acts += [
            each.flood(RATE / SIX, until)
            if arm == "hostile"
            else each.act(random.Random(chance.random()), until)
            for each in six
        ]
        await asyncio.gather(teacher.lesson(until), *acts)
        print(f"turn {turn}, {arm}: load {os.getloadavg()[0]:.1f}", flush=True)
        if turn:
            times = [seconds for each in pupils for seconds in each.times]
            p95s[arm].append(percentile(times, 0.95))
            loads.append(os.getloadavg()[0])
            seen += len(times)
        if arm == "hostile":
            sent.append((sum(each.sent for each in six) - before) / seconds)
            for each in six:  # what is still on its way belongs to no turn
                each.tab.socket.transport.abort()  # nobody reads, so no end would be heard
                each.tab, each.page, each.drawn = Tab(address), Page(), ""
                each.tab.by_region = True
                await each.come(f"/room/{code}")
        await asyncio.sleep(1)
    errors = [error for each in (teacher, *members) for error in each.errors]
    log = len(store.since(code))
    for each in (teacher, *members):
        for task in each.tasks:
            task.cancel()
        await each.tab.close()
    return {
        "p95 of a click": p95s,
        "clicks": seen,
        "requests a second of the six": sent,
        "teacher's acts": teacher.acts,
        "refused": teacher.refused,
        "events kept": log,
        "load of the machine": loads,
        "errors": errors[:5],
    }


def measure(replicas: int, file: Path | None, seconds: float = SECONDS) -> int:
    with tempfile.TemporaryDirectory() as folder:
        where = str(Path(folder) / "rooms.sqlite")
        served = server.app(replicas, HEADLIGHT_ROOMS=where, OMP_NUM_THREADS="1")
        with served as running, closing(room_stores.open_store(where)) as store:
            found = asyncio.run(_class(running.address, store, seconds))
    p95s = found["p95 of a click"]
    found["ratios"] = [b / a for a, b in zip(p95s["allowed"], p95s["hostile"], strict=True)]
    bars = [
        Bar("p95 beside six hostile ÷ beside six others", statistics.median(found["ratios"]), 2.0),
        Bar("teacher's acts that were refused", len(found["refused"]), 0),
        Bar("errors", len(found["errors"]), 0),
        Bar(
            "share of the requests that the six did not send",
            1 - min(found["requests a second of the six"]) / RATE,
            0.05,
        ),
    ]
    print(json.dumps(found, indent=2))
    return conclude(bars, found, file)
