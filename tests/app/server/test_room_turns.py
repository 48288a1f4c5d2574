"""Laws of the turns of a class that follows its teacher."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from headlight.app.server import room_turns
from headlight.app.server.room_turns import AT_ONCE, Turns

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
