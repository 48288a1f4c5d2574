"""Who computes when many ask."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from app import labels
from app.turns import Turns


def come(turns, pool, names, block):
    """Threads that ask for a turn one after another."""
    asked = []
    for name in names:
        before = len(turns.waiting) + len(turns.computing)
        asked.append(pool.submit(block, name))
        end = time.monotonic() + 10
        while len(turns.waiting) + len(turns.computing) == before and time.monotonic() < end:
            time.sleep(0.001)
    return asked


def test_turns_come_in_the_order_of_asking_and_a_few_at_once():
    turns, release, came, together = Turns(2), threading.Event(), [], []

    def block(name):
        with turns.turn():
            came.append(name)
            together.append(len(turns.computing))
            with turns.turn():  # it has its turn already
                release.wait(10)

    with ThreadPoolExecutor(8) as pool, turns.turn():
        asked = come(turns, pool, "abcdef", block)
        release.set()
        assert [one.exception(10) for one in asked] == [None] * 6
    assert "".join(came) == "abcdef" and max(together) <= 2
    assert not turns.computing and not turns.waiting


def test_who_waits_is_told_how_many_are_ahead_and_may_give_up():
    turns, heard = Turns(1), []

    class Stopped(BaseException):
        pass

    def told(ahead):
        heard.append(ahead)
        if len(heard) == 3:
            raise Stopped

    def waits(name):
        with turns.turn(), turns.turn():
            pass

    def gives_up(name):
        with pytest.raises(Stopped), turns.turn(told, every=0.01):
            pytest.fail("its turn never came")

    with ThreadPoolExecutor(3) as pool:
        with turns.turn():
            first, *_ = come(turns, pool, "a", waits)
            pool.submit(gives_up, "b").result(10)
            assert heard == [2, 2, 2]  # who computes, and one that waits
        assert first.exception(10) is None
    assert not turns.computing and not turns.waiting


def test_the_wait_in_words():
    assert [labels.ahead(n) for n in (0, 1, 12)] == [
        "You are next …", "1 person is ahead of you …", "12 people are ahead of you …",
    ]  # fmt: skip
