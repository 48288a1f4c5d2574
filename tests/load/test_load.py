"""Twelve sessions at once on a running app, in short; `python -m tests.load` is the rest."""

import asyncio
import json
import random
from dataclasses import replace

import pytest

from tests.conftest import run_apart
from tests.load.check import mistakes, wrong
from tests.load.report import percentile, together
from tests.load.student import Record, Student
from tests.load.tab import Tab

OF_ALL = ("en-de", "copy", "reviews", "induction")

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def records(app) -> list[Record]:
    """What twelve students saw, who did five things each."""

    async def lesson(number: int) -> Record:
        chance = random.Random(number)
        student = Student(Tab(app), OF_ALL[number % len(OF_ALL)], chance, Record())
        await student.open()
        acts = [student.type, student.mask, student.head, student.switch_head, student.sweep]
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
    assert len(record.answers) >= 72
    assert mistakes(record.answers) == []


def test_an_answer_to_another_is_noticed(records):
    """The check can fail: in the text, the numbers, the order and the selected head."""
    answers = records[0].answers
    plain = next(one for one in answers if one.wanted.order != "ablation")
    assert wrong(plain) == ""
    wanted = plain.wanted
    assert "the source is" in wrong(replace(plain, wanted=replace(wanted, source="a dog")))
    masks = replace(wanted.masks, causal=not wanted.masks.causal)
    assert "differ" in wrong(replace(plain, wanted=replace(wanted, masks=masks)))
    other = replace(wanted, off=(*wanted.off, "encoder.1.1", "encoder.1.2"))
    assert wrong(replace(plain, wanted=other))
    assert "is selected" in wrong(replace(plain, wanted=replace(wanted, head=99)))
    swept = next(one for one in answers if one.wanted.order == "ablation")
    look = json.loads(swept.look)
    look["order"]["encoder"]["values"][0] = "+99.00"
    assert "effects of encoder" in wrong(replace(swept, look=json.dumps(look)))


def test_percentiles():
    assert [percentile([3, 1, 2], share) for share in (0.01, 0.5, 0.95, 1)] == [1, 2, 3, 3]
    assert percentile(list(range(1, 101)), 0.95) == 95
