"""What is kept, and for how long."""

import gc
import itertools
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest
from streamlit.runtime.fragment import MemoryFragmentStorage
from torch import Tensor

from headlight.app.server import garbage
from headlight.app.state import history as history_module
from headlight.app.state.cache import ByteBoundedCache
from headlight.app.state.pages import EXPORT, HOME, PAGES
from headlight.model.analysis import predictions
from headlight.model.probing.trace import Pass


def test_cache_holds_no_more_bytes_than_it_may():
    cache, made = ByteBoundedCache(limit=10), []

    def get(key, size=4):
        return cache.get(key, lambda: made.append(key) or key, lambda value: size)

    assert [get(k) for k in "abacb"] == [*"abacb"] and made == ["a", "b", "c", "b"]
    assert list(cache.entries) == ["c", "b"]  # the least recently used goes
    assert get("huge", 99) == "huge" and get("small", 1) == "small"
    assert list(cache.entries) == ["small"]  # what is larger than the limit is still given


def test_cache_holds_no_more_results_than_it_may_and_tells_which_went():
    gone = []
    cache = ByteBoundedCache(most=2, gone=gone.append)
    assert [cache.get(key, lambda key=key: key) for key in "abcd"] == list("abcd")
    assert list(cache.entries) == ["c", "d"] and gone == ["a", "b"]
    cache.forget(lambda key: key == "c")
    assert list(cache.entries) == ["d"]


def test_what_all_take_together_is_known_whatever_comes_and_goes():
    cache = ByteBoundedCache(limit=20)
    for key, size in (("a", 4), ("b", 8), ("a", 6), ("c", 5), ("d", 9), ("e", 99), ("f", 1)):
        cache.put(key, key, size)
        assert cache.bytes == sum(size for _, size in cache.entries.values())
    cache.forget(lambda key: key == "f")
    assert not cache.entries and cache.bytes == 0


def test_the_two_used_last_stay_however_large():
    cache = ByteBoundedCache(limit=10, least=2)
    for key in "abc":
        cache.get(key, object, lambda value: 99)
    assert list(cache.entries) == ["b", "c"]


@pytest.mark.parametrize("fails", [False, True])
def test_what_all_ask_for_at_once_is_made_once_and_anew_where_that_failed(fails):
    cache, made = ByteBoundedCache(limit=10), []
    begun, release = threading.Event(), threading.Event()

    def make():
        made.append(threading.current_thread())
        begun.set()
        release.wait(10)
        if fails and len(made) == 1:
            raise KeyError("broken off")
        return len(made)

    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(cache.get, "same", make) for _ in range(3)]
        begun.wait(10)
        release.set()
        results = [one.exception() or one.result() for one in asked]
    assert len(made) == 1 + fails
    assert sorted(map(str, results)) == (["'broken off'", "2", "2"] if fails else ["1", "1", "1"])
    assert not cache.making


def test_the_last_changes_can_be_undone_however_many_there_were():
    history = history_module.History()
    for number in range(10_000):
        history.hear(f"cross.1.{number}=off", None)
    assert len(history.states) == history_module.MAX_UNDO
    before = ("cross.1.9998=off", None), ("cross.1.9997=off", None)
    assert (history.go(-1), history.go(-1)) == before
    history.hear("cross.1.1=off", None)
    assert not history.can(1) and history.go(-1) == before[1]


def test_one_session_does_not_wait_for_another():
    cache, inside, release = ByteBoundedCache(limit=10), threading.Event(), threading.Event()

    def slow():
        inside.set()
        release.wait(10)

    thread = threading.Thread(target=cache.get, args=("slow", slow, lambda value: 1))
    thread.start()
    inside.wait(10)
    assert cache.get("quick", lambda: "quick", lambda value: 1) == "quick"
    release.set()
    thread.join()


def test_what_is_kept_may_be_replaced_by_more():
    cache = ByteBoundedCache(limit=10)
    assert cache.known("sweep") is None
    cache.put("sweep", "half", 4)
    cache.put("other", "o", 4)
    cache.put("sweep", "whole", 6)
    assert cache.known("sweep") == "whole" and list(cache.entries) == ["other", "sweep"]
    cache.put("more", "m", 1)
    assert list(cache.entries) == ["sweep", "more"]


def test_garbage_is_collected_after_many_runs_not_after_each(monkeypatch):
    collected = []
    monkeypatch.setattr(garbage, "_script_runs", itertools.count(1))
    monkeypatch.setattr(garbage.gc, "collect", lambda: collected.append(1))
    for _ in range(2):
        for _ in range(garbage.COLLECT_EVERY):
            assert not collected
            garbage.collect_garbage()
        assert collected.pop() and not collected


# Export's files are made on demand, of the trace that its page shows.
LET_GO = [key for key in PAGES if key != EXPORT]


def reached(objects: Iterable) -> Iterable:
    """All that these lead to, but for what modules hold."""
    seen, left = {}, list(objects)
    while left:
        one = left.pop()
        module = isinstance(one, dict) and sys.modules.get(one.get("__name__"))
        of_module = module and one is vars(module) and one["__name__"] != "__main__"
        if id(one) not in seen and not of_module and not isinstance(one, ModuleType | type):
            seen[id(one)] = one
            left += gc.get_referents(one)
    return seen.values()


@pytest.mark.parametrize("key", LET_GO)
def test_a_session_keeps_nothing_that_its_page_has_computed(page, key, monkeypatch):
    """Streamlit keeps the callbacks of a session's widgets, and its fragments. One that a page's
    script defines keeps all names of that script, a trace among them, whatever the caches let
    go."""
    fragments = []
    register = MemoryFragmentStorage.register

    def registered(storage, name, fragment, **more):
        fragments.append(fragment)
        register(storage, name, fragment, **more)

    monkeypatch.setattr(MemoryFragmentStorage, "register", registered)
    page.query_params.update(model="en-de", source="A dog runs.")
    page.run()
    fragments.clear()
    page.switch_page(key).run()
    assert not page.exception
    state = page.session_state._state
    metadata = getattr(state, "_state", state)._new_widget_state.widget_metadata.values()
    callbacks = [one.callback for one in metadata]
    callbacks += [c for one in metadata for c in (one.callbacks or {}).values()]
    kept = [one for one in callbacks if one] + fragments
    assert len(kept) > 3
    assert (key in ("inside", HOME)) == bool(fragments)
    computed = [type(one) for one in reached(kept) if isinstance(one, Tensor | Pass)]
    assert not computed


def test_predictions_of_a_run_seen_before_are_not_computed_again(page, monkeypatch):
    page.query_params.update(model="en-de", source="A dog runs.")
    page.run()
    page.toggle("causal").set_value(False).run()
    count = []
    of = predictions.predictions
    monkeypatch.setattr(predictions, "predictions", lambda trace: count.append(1) or of(trace))
    for value in (True, False):
        page.toggle("causal").set_value(value).run()
    assert not page.exception and not count
