"""Who computes when many ask."""

import itertools
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest
import torch

from headlight.app.results import layer_results, memoize, sweep_results, word_results
from headlight.app.results.shown import Shown, target_of
from headlight.app.server import fair_queue as queue
from headlight.app.server.fair_queue import FairQueue
from headlight.app.state import catalog
from headlight.app.text import notices
from headlight.model.checkpoint import load
from headlight.model.decoding.generate import Beam, Sampling
from headlight.model.masks import Masks
from headlight.model.pause import pausing
from headlight.model.probing.capture import view
from headlight.model.probing.run import Run
from headlight.model.probing.sweeps import Score
from tests.waiting import wait_until


def come(turns, pool, names, block):
    """Threads that ask for a turn one after another."""
    asked = []
    for name in names:
        before = len(turns.waiting) + len(turns.computing)
        asked.append(pool.submit(block, name))
        wait_until(lambda before=before: len(turns.waiting) + len(turns.computing) != before)
    return asked


def wait_for(asked):
    assert [one.exception(60) for one in asked] == [None] * len(asked)


@contextmanager
def ended(turns):
    """Thereafter nobody computes, and nobody waits."""
    yield
    assert not turns.computing and not turns.waiting


def test_turns_come_in_the_order_of_asking_and_a_few_at_once():
    turns, release, came, together = FairQueue(2), threading.Event(), [], []

    def block(name):
        with turns.turn(name):
            came.append(name)
            together.append(len(turns.computing))
            with turns.turn(name):  # it has its turn already
                release.wait(10)

    with ended(turns), ThreadPoolExecutor(8) as pool, turns.turn(None):
        asked = come(turns, pool, "abcdef", block)
        release.set()
        wait_for(asked)
    assert "".join(came) == "abcdef" and max(together) <= 2


def test_two_never_compute_with_the_same_thing():
    """And who waits for it keeps nobody from another."""
    turns, release, came, together = FairQueue(3), threading.Event(), [], []

    def block(name):
        with turns.turn(name[0]):
            came.append(name)
            together.append([work.resource for work in turns.computing.values()])
            release.wait(10)

    with ended(turns), ThreadPoolExecutor(8) as pool:
        asked = come(turns, pool, ["a1", "a2", "b1", "a3", "b2"], block)
        assert came == ["a1", "b1"]
        release.set()
        wait_for(asked)
    assert [name for name in came if name[0] == "a"] == ["a1", "a2", "a3"]
    assert all(len(things) == len(set(things)) for things in together)


def test_passes_over_one_view_never_overlap(monkeypatch):
    """Hooks of one would fire in the other: Streamlit begins the next run of a session while one
    that was stopped is still in a pass."""
    monkeypatch.setattr(memoize, "QUEUE", FairQueue(2))
    mine, others = (
        SimpleNamespace(model=view(load("copy").model), device="cpu", stamp=(name,))
        for name in ("mine", "others")
    )
    passes, most, done = Counter(), Counter(), []

    def all_ask_and_two_compute():
        asked = len(memoize.QUEUE.waiting) + len(memoize.QUEUE.computing)
        return asked + len(done) >= 8 and most["all"] > 1

    def computes(view, name):
        def make():
            passes[view.stamp] += 1
            passes["all"] += 1
            most.update({key: passes[key] - most[key] for key in passes if passes[key] > most[key]})
            wait_until(all_ask_and_two_compute)
            done.append(name)
            passes.subtract([view.stamp, "all"])
            return name

        assert memoize.memoize_pass(Shown(view, Run(())), name, make, lambda result: 1) == name

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(computes, [mine, mine, others, mine] * 2, range(8)))
    assert most == {("mine",): 1, ("others",): 1, "all": 2}


def test_who_waits_is_told_how_many_are_ahead_and_may_give_up():
    turns, heard = FairQueue(1), []

    def told(ahead):
        heard.append(ahead)
        if len(heard) == 3:
            raise Left

    def waits(name):
        with turns.turn(name), turns.turn(name):
            pass

    def gives_up(name):
        with pytest.raises(Left), turns.turn(name, told, interval=0.01):
            pytest.fail("its turn never came")

    with ended(turns), ThreadPoolExecutor(3) as pool:
        with turns.turn(None):
            asked = come(turns, pool, "a", waits)
            pool.submit(gives_up, "b").result(10)
            assert heard == [2, 2, 2]  # who computes, and one that waits
        wait_for(asked)


def test_the_wait_in_words():
    assert [notices.queue_position(n) for n in (0, 1, 12)] == [
        "You are next …", "1 person is ahead of you …", "12 people are ahead of you …",
    ]  # fmt: skip


@pytest.fixture
def always(monkeypatch):
    """Whoever computes gives way at each pause, and one computes at a time."""
    monkeypatch.setattr(queue, "LONG", 0.0)
    monkeypatch.setattr(memoize, "QUEUE", FairQueue(1))
    return memoize.QUEUE


class Left(BaseException):
    """Nobody waits for the work any more."""


STEP = queue.LONG / 50  # of a long work, in seconds


def test_short_work_goes_before_long_between_its_steps(clock):
    turns, came, release = FairQueue(1), [], threading.Event()

    def long(name):
        with turns.turn(name):
            while not release.wait(0.0005):
                with turns.changed:
                    came.append((name, {work.resource for work in turns.waiting}))
                clock.now += STEP
                turns.pause()

    def short(name):
        with turns.turn(name):
            came.append((name, set()))

    def by_turns():
        return [name for name, _ in itertools.groupby(name for name, _ in [*came] if name in "ab")]

    with ThreadPoolExecutor(8) as pool, releasing(release):
        asked = come(turns, pool, "ab", long)
        wait_until(lambda: len(by_turns()) > 2)  # in the midst of both
        for name in "cdefgh":
            pool.submit(short, name).result(60)
            before = len(came)
            wait_until(lambda before=before: len(came) > before + 100)
    wait_for(asked)
    for name in "cdefgh":  # a turn lasts fifty steps
        assert sum(name in waiting for _, waiting in came) <= 1
    assert len(by_turns()) < len(came) / 10
    assert not turns.computing and not turns.waiting


@contextmanager
def releasing(event):
    """Threads that wait for it go on, also where a test fails."""
    try:
        yield
    finally:
        event.set()


@pytest.fixture
def clock(monkeypatch):
    """The queue's time, which a test moves on."""
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(queue, "time", clock)
    return clock


def order_of_turns(turns, large="", contexts=MappingProxyType({})):
    """Of "a" and "b", who ask one after the other while somebody computes."""
    came = []

    def block(name):
        with turns.turn(name, large=name in large):
            came.append(name)

    def asks(name):
        contexts.get(name, copy_context()).run(block, name)

    with ThreadPoolExecutor(2) as pool, turns.turn(None):
        come(turns, pool, "ab", asks)
    return "".join(came)


def test_large_work_is_long_from_the_start(clock):
    assert order_of_turns(FairQueue(1)) == "ab"
    assert order_of_turns(FairQueue(1), large="ab") == "ab"
    assert order_of_turns(FairQueue(1), large="a") == "ba"


@pytest.mark.parametrize(("steps", "order"), [(40, "ab"), (60, "ba")])
def test_all_turns_of_one_asker_count_together(clock, steps, order):
    """Each is short, and fifty are long."""
    turns = FairQueue(1)
    with queue.one_asker():
        for _ in range(steps):
            with turns.turn("a"):
                clock.now += STEP
        asker = copy_context()
    assert order_of_turns(turns, contexts={"a": asker}) == order
    assert order_of_turns(turns) == "ab"  # another asker


def test_long_work_stands_still_while_short_work_computes(clock):
    """Also where there is room for both, unless it has waited long; but no step of it is lost."""
    turns, came, ends = FairQueue(2), [], threading.Event()
    steps = threading.Semaphore(0)

    def long(name):
        with turns.turn(name, large=True):
            for _ in range(4):
                steps.acquire(timeout=10)
                turns.pause()
                came.append(name)

    def short(name):
        with turns.turn(name):
            ends.wait(10)

    def computing():
        return {work.resource for work in turns.computing.values()}

    with ThreadPoolExecutor(4) as pool, releasing(ends):
        asked = come(turns, pool, ["long"], long)
        steps.release()
        wait_until(lambda: came == ["long"])
        asked += come(turns, pool, ["short"], short)
        assert computing() == {"long", "short"}  # until the next step
        steps.release()
        wait_until(lambda: computing() == {"short"})
        clock.now += queue.PATIENCE
        asked += come(turns, pool, ["later"], short)
        assert computing() == {"long", "short"} and [w.resource for w in turns.waiting] == ["later"]
        steps.release()
        wait_until(lambda: computing() == {"later", "short"})
        ends.set()
        steps.release()
        wait_for(asked)
    assert came == ["long"] * 4
    assert not turns.computing and not turns.waiting


def test_nobody_has_what_one_computes_with_while_it_has_given_its_turn_up(always):
    """Hooks of the one that waits in the midst of its pass would fire in the other."""
    came, goes_on, ends = [], threading.Event(), threading.Event()

    def first(name):
        with always.turn("view"):
            came.append("begins")
            goes_on.wait(10)
            always.pause()
            came.append("goes on")

    def others(name):
        with always.turn(name):
            came.append(name)
            if name == "other":
                ends.wait(10)

    with ThreadPoolExecutor(4) as pool, releasing(goes_on), releasing(ends):
        asked = come(always, pool, ["first"], first)
        asked += come(always, pool, ["view", "other"], others)
        goes_on.set()
        wait_until(lambda: "other" in came)
        ends.set()
        wait_for(asked)
    assert came == ["begins", "other", "goes on", "view"]


def test_of_large_works_few_are_under_way(always):
    """Each holds its memory while others compute."""
    under_way, most, release = set(), [], threading.Event()

    def large(name):
        with always.turn(name, large=True):
            under_way.add(name)
            while not release.is_set():
                most.append(len(under_way))
                always.pause()
            under_way.remove(name)

    def small(name):
        with always.turn(name):
            return len(under_way)

    with ThreadPoolExecutor(8) as pool, releasing(release):
        asked = come(always, pool, "abc", large)
        assert [pool.submit(small, name).result(10) for name in "de"] == [1, 1]
    wait_for(asked)
    assert set(most) == {1}


def test_work_ends_at_a_pause_and_leaves_nothing_behind(always):
    def leaves(ahead):
        raise Left

    release = threading.Event()

    def waits(name):
        with always.turn(name):
            release.wait(10)

    def ends(name):
        with pytest.raises(Left), always.turn(name):
            come(always, pool, "b", waits)
            always.pause(leaves, interval=0.01)
            pytest.fail("it went on")

    with ended(always), ThreadPoolExecutor(4) as pool, releasing(release):
        pool.submit(ends, "a").result(10)
        assert [work.resource for work in always.computing.values()] == ["b"] and not always.waiting


def test_each_turn_has_its_own_cores_again(always):
    """Also in a thread that computes for the first time: PyTorch gives it then what the last
    thread asked for."""
    seen, models = {1: [], 2: []}, {count: view(load("copy").model) for count in (1, 2)}
    barrier = threading.Barrier(2)

    def computes(count):
        barrier.wait(10)
        with memoize.threads(models[count], tokens=5, cores=count):
            for _ in range(50):
                torch.randn(300, 300) @ torch.randn(300, 300)
                seen[count].append(torch.get_num_threads())
                memoize._give_way(0, 0)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(computes, (1, 2)))
    assert seen == {1: [1] * 50, 2: [2] * 50}


@pytest.mark.parametrize(("tokens", "pauses"), [(5, 0), (memoize.SHORT, 2 + 2)])
def test_a_long_pass_pauses_before_each_layer(tokens, pauses, monkeypatch):
    came, model = [], view(load("copy").model)
    ids = [torch.tensor([[5, 6, 7]])] * 2
    monkeypatch.setattr(memoize, "_give_way", lambda *_: came.append(1))
    with memoize.threads(model, tokens=tokens):
        model(*ids, *Masks().build(model, *ids))
    model(*ids, *Masks().build(model, *ids))
    assert len(came) == pauses


SENTENCE = "A dog runs through the snow and a man in a red hat looks at it."


def works(view):
    """What takes long, each on texts of its own; bare functions of a view."""
    shown = Shown(view, view.checkpoint.run(SENTENCE))
    changes = "encoder.1.1=off; cross.2.3=uniform"
    changed = Shown(view, view.checkpoint.run(SENTENCE, changes=changes))
    score = Score(2, 40)
    return {
        "needs": lambda: word_results.needs_of(shown, 2).probability,
        "attribution": lambda: np.stack(
            [*word_results.attribution_of(changed, score, (0, 1)).values.values()]
        ),
        "beams": lambda: shown.generation(Beam(10)).probabilities,
        "drawn": lambda: changed.generation(Sampling(seed=3)).probabilities,
        "sweep": lambda: sweep_results.sweep_of(changed, "heads").effects,
        "trace": lambda: changed.trace.logits,
        "lens": lambda: layer_results.lens_of(shown).probability,
        "target": lambda: np.array(target_of(view, SENTENCE, changes="cross=off").ids),
    }


def test_interrupted_passes_give_the_same_bits(always, monkeypatch):
    """Several at once, each of which gives way at every pause to all others."""
    monkeypatch.setattr(memoize, "LONG_PASS", 0)
    monkeypatch.setattr(memoize, "results_cache", lambda: cache)
    names, came = list(works(catalog.view_of("en-de", "final", "cpu"))), []

    def computes(name):
        work = works(catalog.view_of("en-de", "final", "cpu"))[name]
        with pausing(lambda done, total: came.append(name)):
            return work()

    cache = memoize.ByteBoundedCache()
    alone = dict(zip(names, map(computes, names), strict=True))
    came.clear()
    cache = memoize.ByteBoundedCache()
    with ThreadPoolExecutor(len(names)) as pool:
        together = dict(zip(names, pool.map(computes, names), strict=True))
    changes = sum(one != other for one, other in itertools.pairwise(came))
    assert set(came) == set(names) and changes > len(came) / 2 > 50
    for name in names:
        assert np.array_equal(alone[name], together[name]), name


@pytest.mark.parametrize("name", ["needs", "attribution", "beams", "sweep", "trace", "target"])
def test_what_is_left_half_made_leaves_no_trace(name, monkeypatch):
    """Its asker is gone at some pause: no hook stays, nothing is kept, and it can be made anew."""
    monkeypatch.setattr(memoize, "LONG_PASS", 0)
    cache = memoize.ByteBoundedCache()
    monkeypatch.setattr(memoize, "results_cache", lambda: cache)
    pauses = 0

    def leaves():
        nonlocal pauses
        pauses += 1
        if pauses == 5:
            raise Left

    monkeypatch.setattr(memoize, "_end_if_left", leaves)
    view = catalog.view_of("en-de", "final", "cpu")
    with pytest.raises(Left):
        works(view)[name]()
    half = [key for key in cache.entries if key[0][0] != "_given"]  # what others gave is whole
    assert pauses == 5 and not half and not cache.making
    assert not any(
        module._forward_hooks or module._forward_pre_hooks for module in view.model.modules()
    )
    again = works(view)[name]()
    fresh = works(catalog.view_of("en-de", "final", "cpu"))
    cache.forget(lambda key: True)
    assert np.array_equal(again, fresh[name]())
