"""A class that answers while the process of most of its students is killed: each answer that a
student saw arrive counts once."""

import asyncio
import random
from contextlib import closing

import pytest

from headlight.app.server import room_stores, rooms
from headlight.app.server.rooms import AGAIN, ASK, CLOSE, Store
from tests.app.server.conftest import redis_server
from tests.app.test_killed import Served, serving
from tests.app.test_serve import needs_nginx
from tests.conftest import run_apart
from tests.load.room import Member
from tests.load.tab import Lost
from tests.waiting import wait_until

STUDENTS, ROUNDS, WITHIN = 60, 5, 2.0  # seconds
CHOICES = ["red", "car", "of"]
PATIENCE = 60  # seconds


class Voter(Member):
    """A student, who answers again where an answer did not arrive."""

    lost = 0  # connections

    async def look(self) -> str | None:
        """The answer that the page shows as arrived."""
        try:
            page = await (self.tab.run() if self.tab.session else self.tab.open())
        except Lost:
            return await self.come_back()
        return self.seen(page)

    async def come_back(self) -> str | None:
        """After a lost connection, to another process."""
        self.lost += 1
        for _ in range(PATIENCE):
            try:
                return self.seen(await self.tab.open())
            except Lost:
                await asyncio.sleep(1)
        raise AssertionError("no process answers")

    def seen(self, page) -> str | None:
        self.errors += page.exceptions
        buttons = {key: e.button for key, e in page.elements.items() if "room_choice" in key}
        assert len(buttons) == len(CHOICES)
        marked = [key for key, button in buttons.items() if button.type == "primary"]
        return CHOICES[int(marked[0].split("_")[2])] if marked else None

    async def answer(self, choice: int, number: int, after: float) -> str:
        await asyncio.sleep(after)
        seen = None
        while seen is None:
            try:
                seen = self.seen(await self.tab.click(f"room_choice_{choice}_1.{number}"))
            except Lost:
                seen = await self.come_back()
        return seen


def busiest(served: Served):
    """The process that holds most connections."""
    led = served.led().values()
    return max(led, key=lambda process: len(process.net_connections(kind="tcp")))


async def rounds(served: Served, store: Store, chance: random.Random) -> list[int]:
    """How many connections each round lost."""
    teacher = Member(served.running.address)
    await teacher.come("/room", "POST")
    code = teacher.tab.parameters["room"][0]
    students = [Voter(served.running.address) for _ in range(STUDENTS)]
    for i in range(0, STUDENTS, 6):
        await asyncio.gather(*(each.come(f"/room/{code}") for each in students[i : i + 6]))
    names = [
        rooms.student_of(code, student.cookies[f"headlight_student_{code}"]) for student in students
    ]
    assert len({*names}) == STUDENTS
    about = {"kind": "choose", "text": "Which?", "choices": CHOICES}
    store.append(code, ASK, {"about": about})
    lost = []
    for number in range(1, ROUNDS + 1):
        await asyncio.to_thread(wait_until, served.is_whole)
        for student in students:
            assert await student.look() is None
        before = sum(student.lost for student in students)
        acts = [
            student.answer(chance.randrange(3), number, chance.uniform(0, WITHIN))
            for student in students
        ]
        answering = asyncio.gather(*acts)
        await asyncio.sleep(WITHIN / 2)
        busiest(served).kill()
        acknowledged = dict(zip(names, await answering, strict=True))
        question = rooms.state_after(store.since(code), code).question
        assert question is not None and question.answers == acknowledged
        lost.append(sum(student.lost for student in students) - before)
        store.append(code, CLOSE, {"key": [1, number]})
        store.append(code, AGAIN, {"key": [1, number]})
    assert not [error for student in students for error in student.errors]
    for member in (teacher, *students):
        await member.tab.close()
    return lost


@needs_nginx
@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_each_answer_that_arrived_counts_once(models, tmp_path, kind):
    if kind == "redis":
        with redis_server(tmp_path) as where:
            lost = vote(models, where)
    else:
        lost = vote(models, str(tmp_path / "rooms.sqlite"))
    print(f"{kind}: {ROUNDS} times {STUDENTS} answers, lost connections {lost}")
    assert all(lost)  # else nobody was disturbed


def vote(models, where: str) -> list[int]:
    with (
        serving(models, 2, HEADLIGHT_ROOMS=where) as served,
        closing(room_stores.open_store(where)) as store,
    ):
        return run_apart(rounds(served, store, random.Random(6)))
