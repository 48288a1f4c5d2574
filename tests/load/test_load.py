"""Twelve sessions at once on a running app, in short; `python -m tests.load` is the rest."""

import asyncio
import random

import pytest

from tests.conftest import run_apart
from tests.load.check import mistakes
from tests.load.report import together
from tests.load.student import Record, Student
from tests.load.tab import Tab

OF_ALL = ("en-de", "copy", "reviews", "induction")

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def records(app) -> list[Record]:
    """What twelve students saw, who did four things each."""

    async def lesson(number: int) -> Record:
        chance = random.Random(number)
        student = Student(Tab(app), OF_ALL[number % len(OF_ALL)], chance, Record())
        await student.open()
        acts = [student.type, student.mask, student.switch_head, student.sweep]
        for act in chance.sample(acts, len(acts)):
            await act()
        await student.tab.close()
        return student.record

    async def lessons() -> list[Record]:
        return await asyncio.gather(*map(lesson, range(12)))

    return run_apart(lessons())


def test_each_session_sees_what_it_asked_for(records):
    record = together(records)
    assert record.errors == []
    assert len(record.answers) >= 69
    assert mistakes(record.answers) == []
