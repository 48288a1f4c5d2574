"""Who computes when many ask."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch

from app import compute, labels
from app.turns import Turns
from model.probing.run import Run


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
        with turns.turn(name):
            came.append(name)
            together.append(len(turns.computing))
            with turns.turn(name):  # it has its turn already
                release.wait(10)

    with ThreadPoolExecutor(8) as pool, turns.turn(None):
        asked = come(turns, pool, "abcdef", block)
        release.set()
        assert [one.exception(10) for one in asked] == [None] * 6
    assert "".join(came) == "abcdef" and max(together) <= 2
    assert not turns.computing and not turns.waiting


def test_two_never_compute_with_the_same_thing():
    """And who waits for it keeps nobody from another."""
    turns, release, came, together = Turns(3), threading.Event(), [], []

    def block(name):
        with turns.turn(name[0]):
            came.append(name)
            together.append(sorted(turns.computing.values()))
            release.wait(10)

    with ThreadPoolExecutor(8) as pool:
        asked = come(turns, pool, ["a1", "a2", "b1", "a3", "b2"], block)
        assert came == ["a1", "b1"]
        release.set()
        assert [one.exception(10) for one in asked] == [None] * 5
    assert [name for name in came if name[0] == "a"] == ["a1", "a2", "a3"]
    assert all(len(things) == len(set(things)) for things in together)
    assert not turns.computing and not turns.waiting


def test_passes_over_one_view_never_overlap(monkeypatch):
    """Hooks of one would fire in the other: Streamlit begins the next run of a session while one
    that was stopped is still in a pass."""
    monkeypatch.setattr(compute, "TURNS", Turns(2))
    mine, others = (
        SimpleNamespace(model=torch.nn.Module(), device="cpu", stamp=(name,))
        for name in ("mine", "others")
    )
    passes, most = Counter(), Counter()

    def computes(view, name):
        def make():
            passes[view.stamp] += 1
            passes["all"] += 1
            most.update({key: passes[key] - most[key] for key in passes if passes[key] > most[key]})
            time.sleep(0.05)
            passes.subtract([view.stamp, "all"])
            return name

        assert compute.cached(view, Run(()), name, make, lambda result: 1) == name

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(computes, [mine, mine, others, mine] * 2, range(8)))
    assert most == {("mine",): 1, ("others",): 1, "all": 2}


def test_who_waits_is_told_how_many_are_ahead_and_may_give_up():
    turns, heard = Turns(1), []

    class Stopped(BaseException):
        pass

    def told(ahead):
        heard.append(ahead)
        if len(heard) == 3:
            raise Stopped

    def waits(name):
        with turns.turn(name), turns.turn(name):
            pass

    def gives_up(name):
        with pytest.raises(Stopped), turns.turn(name, told, every=0.01):
            pytest.fail("its turn never came")

    with ThreadPoolExecutor(3) as pool:
        with turns.turn(None):
            first, *_ = come(turns, pool, "a", waits)
            pool.submit(gives_up, "b").result(10)
            assert heard == [2, 2, 2]  # who computes, and one that waits
        assert first.exception(10) is None
    assert not turns.computing and not turns.waiting


def test_the_wait_in_words():
    assert [labels.ahead(n) for n in (0, 1, 12)] == [
        "You are next …", "1 person is ahead of you …", "12 people are ahead of you …",
    ]  # fmt: skip
