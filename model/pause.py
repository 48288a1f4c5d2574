"""Long work in steps. Between two of them it may wait, be told of, or end.

A model's layers, the batches of a sweep and the steps of decoding are such steps. What happens
between them is up to whoever computes for many, and sets it by `pausing`; by itself nothing does.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Hear = Callable[[int, int], None]


def _nothing(done: int, total: int) -> None:
    pass


_heard: ContextVar[Hear] = ContextVar("heard", default=_nothing)  # each thread has its own


def pause(done: int = 0, total: int = 0) -> None:
    """Between two steps, `done` of `total`, where they are counted. Raises what ends the work."""
    _heard.get()(done, total)


@contextmanager
def pausing(hear: Hear) -> Iterator[None]:
    """`hear` is called at each pause in the block, before those of the blocks around it."""
    outer = _heard.get()

    def both(done: int, total: int) -> None:
        hear(done, total)
        outer(done, total)

    token = _heard.set(both)
    try:
        yield
    finally:
        _heard.reset(token)


@contextmanager
def unbroken() -> Iterator[None]:
    """No pause in the block, which holds what others wait for."""
    token = _heard.set(_nothing)
    try:
        yield
    finally:
        _heard.reset(token)
