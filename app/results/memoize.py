"""Each result is computed once, in this session's turn: queue, threads, cache."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial, wraps
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import streamlit as st
import torch

from headlight.app.server.fair_queue import FairQueue
from headlight.app.server.streamlit_internals import get_script_run_ctx, runtime
from headlight.app.state.cache import ByteBoundedCache, once
from headlight.app.text import notices
from headlight.model.pause import pause, pausing, pausing_before
from headlight.model.probing.run import Run
from headlight.model.probing.sites import layers_of
from headlight.model.sites import ProbedModel

if TYPE_CHECKING:
    from headlight.app.results.shown import Shown

CORES = torch.get_num_threads()
SHORT = 400  # tokens; longer texts are faster on all cores, and take much memory
LONG_PASS = 10**7  # tokens × d_model², from which fewer tokens, too, take a tenth of a second
CACHE_BYTES = 512 * 2**20  # bytes of results: traces of a few long texts
MOST_RESULTS = 256  # results of about eighty short texts
SMALL_RESULT = 10_000  # bytes: roughly the size of a few numbers per head

nbytes = attrgetter("nbytes")  # the size of an array, or of a result with arrays
P = ParamSpec("P")
R = TypeVar("R")

QUEUE = FairQueue(CORES)  # more sessions at once would only compete for the cores
FILE_LOCK = Lock()  # held while a file for download is made
CHECK_INTERVAL = 0.2  # seconds between two checks that whoever waits for a file is still there


@contextmanager
def threads(model: ProbedModel, tokens: int, cores: int | None = None) -> Iterator[None]:
    """This session's turn with a model, on one core for a short text: more threads would wait for
    each other at every small product, especially while a browser on the same machine is drawing.

    Between the steps of long work others take their turns. A run that was stopped, by hand or by a
    broken connection, ends at its next step. The run that follows it uses the same model and waits
    for that; otherwise the hooks of one would fire in the other.
    """
    if QUEUE.is_mine:
        yield
        return
    is_large = tokens >= SHORT
    on_turn = partial(_take_cores, cores or (CORES if is_large else 1))
    with ExitStack() as notice:

        def waits(ahead: int) -> None:
            notice.close()
            notice.enter_context(st.spinner(notices.queue_position(ahead)))

        with QUEUE.turn(model, waits, large=is_large, on_turn=on_turn):
            notice.close()
            try:
                with pausing(_give_way), pausing_before(_steps_of(model, tokens)):
                    yield
            finally:  # not the earlier number: that may be another session's single core
                torch.set_num_threads(CORES)


def _steps_of(model: ProbedModel, tokens: int) -> list[torch.nn.Module]:
    """The layers of the model, if a pass takes long: hooks on them would slow a short one by 4%."""
    if tokens < SHORT and tokens * model.config.d_model**2 < LONG_PASS:
        return []
    return [layer for side in model.sides() for layer in layers_of(model, side)]


def _take_cores(count: int) -> None:
    # A thread's first use of PyTorch takes over the number of the process. Asking brings that about
    # now, so that it does not undo the next line.
    torch.get_num_threads()
    torch.set_num_threads(count)


def _give_way(done: int, total: int) -> None:
    """Between two steps: end work whose user has left, and let others compute."""
    _end_if_left()
    QUEUE.pause(lambda ahead: _end_if_left())


def _end_if_left() -> None:
    """Ends a run whose browser has gone, or has asked for another run."""
    if context := get_script_run_ctx(suppress_warning=True):
        context.yield_check()


class SessionEnded(Exception):
    """The session that asked for a file has ended."""


def one_at_a_time(make: Callable[[], bytes]) -> Callable[[], bytes]:
    """`make` for a file that this session may download, outside of a script run. Files of all
    sessions are made one after another, since each takes a core and memory; one whose session has
    ended is given up at its next pause."""
    context = get_script_run_ctx()
    assert context is not None
    session = context.session_id

    def end_if_left(done: int = 0, total: int = 0) -> None:
        if runtime.exists() and not runtime.get_instance().is_active_session(session):
            raise SessionEnded

    def make_in_turn() -> bytes:
        with suppress(SessionEnded):
            while not FILE_LOCK.acquire(timeout=CHECK_INTERVAL):
                end_if_left()
            try:
                with pausing(end_if_left):
                    pause()
                    return make()
            finally:
                FILE_LOCK.release()
        return b""

    return make_in_turn


def is_out_of_memory(error: Exception) -> bool:
    """PyTorch has no error class for the CPU's memory; only its message tells."""
    ours = isinstance(error, (MemoryError, torch.OutOfMemoryError))
    return ours or "can't allocate memory" in str(error)


def token_count(run: Run) -> int:
    """The number of tokens in all texts together."""
    return sum(len(text.ids) for text in run.texts)


@once
def results_cache() -> ByteBoundedCache:
    return ByteBoundedCache(CACHE_BYTES, MOST_RESULTS)


def of_few_bytes(result: object) -> int:
    return SMALL_RESULT


def memoize(key: tuple, make: Callable, size: Callable = of_few_bytes):
    """The result of `make()` for a key, computed once; `size(result)` is its size in bytes."""
    # Never wait while holding a turn: deadlock.
    return results_cache().get(key, make, size, waits=not QUEUE.is_mine)


def memoize_drawing(shown: "Shown", name, make: Callable, size: Callable = of_few_bytes):
    """`memoize` for what is shown and a `name`: something drawn from results, without a forward
    pass."""
    name = (name, "written") if shown.written else name
    return memoize((name, shown.view.device, shown.view.stamp, shown.run), make, size)


def memoize_pass(
    shown: "Shown", name, make: Callable, size: Callable = of_few_bytes, cores: int | None = None
):
    """As `memoize_drawing`, of what is computed: when this session has its turn; on so many
    `cores`, or as the length of its texts asks for."""

    def once():
        with threads(shown.view.model, token_count(shown.run), cores):
            return make()

    return memoize_drawing(shown, name, once, size)


def cached(
    size: Callable[[Any], int] = of_few_bytes, cores: int | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a function of a Shown and more one whose results `memoize_pass` keeps, under its name
    and the further arguments, given by place; `size(result)` is in bytes."""

    def decorated(compute: Callable[P, R]) -> Callable[P, R]:
        @wraps(compute)
        def known(shown, *more):
            name = compute.__qualname__, *(str(x) if isinstance(x, slice) else x for x in more)
            return memoize_pass(shown, name, partial(compute, shown, *more), size, cores)

        return cast(Callable[P, R], known)  # pyright: ignore[reportInvalidCast]

    return decorated
