"""Laws of the turns of a class that follows its teacher."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace

import pytest

from headlight.app.server import room_turns
from headlight.app.server.room_turns import AT_ONCE, FREE, LONGEST_REST, FairShares, Turns

CLASS = 12


def run_all(turns: Turns) -> list[tuple[str, int]]:
    """What a class at once begins, in its order, and how many turns were under way then."""
    begun, start = [], Barrier(CLASS)

    def page() -> None:
        start.wait()
        with turns.turn() as picture_is_drawn:
            begun.append(("picture", turns.busy))
            time.sleep(0.005)
            picture_is_drawn()
            begun.append(("rest", turns.busy))
            time.sleep(0.005)

    with ThreadPoolExecutor(CLASS) as threads:
        for done in [threads.submit(page) for _ in range(CLASS)]:
            done.result()
    return begun


def test_all_pictures_come_before_the_rest_and_a_few_at_a_time():
    turns = Turns()
    begun = run_all(turns)
    # A page may reach its turn when others have theirs already.
    assert [what for what, _ in begun[:CLASS]].count("picture") >= CLASS - AT_ONCE
    assert max(busy for _, busy in begun) <= AT_ONCE
    assert (turns.busy, turns.pictures) == (0, 0)


def test_an_error_ends_a_turn():
    turns = Turns()
    for is_drawn in (False, True):
        with pytest.raises(ValueError), turns.turn() as picture_is_drawn:
            if is_drawn:
                picture_is_drawn()
            raise ValueError
    assert (turns.busy, turns.pictures) == (0, 0)


def test_pages_that_compute_for_long_hold_up_nobody_for_long(monkeypatch):
    monkeypatch.setattr(room_turns, "PATIENCE", 0.05)
    turns = Turns()
    with turns.turn(), turns.turn(), turns.turn():
        start = time.monotonic()
        with turns.turn() as picture_is_drawn:
            picture_is_drawn()
        assert 0.05 <= time.monotonic() - start < 2


# The share of each student


def rests(monkeypatch, clients: dict[str, tuple[float, float]], until: float) -> dict[str, list]:
    """How long each run of students waits, of whom each asks again after so many seconds for a run
    of so many; by a clock of their own, in which nothing takes time but waiting."""
    shares, now, found = FairShares(), [0.0], {name: [] for name in clients}
    clock = SimpleNamespace(
        monotonic=lambda: now[0],
        sleep=lambda seconds: found[name].append(seconds),
        thread_time=lambda: next(computed),
    )
    monkeypatch.setattr(room_turns, "time", clock)
    due = dict.fromkeys(clients, 0.0)
    while (now := [min(due.values())])[0] < until:
        name = min(due, key=due.__getitem__)
        pause, seconds = clients[name]
        computed = iter([0.0, seconds])
        with shares.run(name):
            pass
        due[name] += pause + found[name][-1]
    return found


def test_who_asks_all_the_time_leaves_the_others_theirs(monkeypatch):
    """Of clicks, and of whole pages."""
    for seconds in (0.015, 0.08):
        class_ = {f"s{i}": (2.0 + i / 100, 0.015) for i in range(15)}
        found = rests(monkeypatch, class_ | {"hostile": (0.06, seconds)}, 200)
        assert not any(sum(found[name]) for name in class_)
        taken = seconds * len(found["hostile"]) / 200
        assert taken < 1.1 / 15 and max(found["hostile"]) <= LONGEST_REST
        quick = found["hostile"].index(next(filter(None, found["hostile"])))
        assert quick * seconds <= FREE + seconds


def test_nobody_waits_alone_nor_where_all_do_the_same(monkeypatch):
    assert not any(rests(monkeypatch, {"s": (0.06, 0.08)}, 60)["s"])
    led = {f"s{i}": (1.0 + i / 100, 0.2) for i in range(15)}
    assert not any(map(any, rests(monkeypatch, led, 60).values()))


def test_many_pages_of_one_student_rest_one_after_the_other(monkeypatch):
    monkeypatch.setattr(room_turns, "LONGEST_REST", 0.05)
    monkeypatch.setattr(room_turns, "FREE", 0.0)
    shares, inside = FairShares(), []

    def page() -> None:
        with shares.run("hostile"):
            inside.append(1)
            assert len(inside) == 1
            sum(range(10_000))
            inside.pop()

    with shares.run("other"):
        pass
    with shares.run("hostile"):
        sum(range(100_000))
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(page) for _ in range(4)]:
            done.result()
    with pytest.raises(ValueError), shares.run("other"):
        raise ValueError
