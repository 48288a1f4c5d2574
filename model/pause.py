"""Pauses in long work: between two steps it may wait for others, report how far it is, or end.

The batches of a sweep and the steps of decoding are such steps, and in a long pass the layers.
`pause` alone does nothing; a program that serves many people says with `pausing` what happens
there.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

from torch import nn

OnPause = Callable[[int, int], None]


def _nothing(done: int, total: int) -> None:
    pass


_on_pause: ContextVar[OnPause] = ContextVar("on_pause", default=_nothing)  # one per thread


def pause(done: int = 0, total: int = 0) -> None:
    """Called between two steps, after `done` of `total` where they are counted. Raises whatever
    ends the work."""
    _on_pause.get()(done, total)


@contextmanager
def pausing(on_pause: OnPause) -> Iterator[None]:
    """Calls `on_pause` at each pause in the block, before those of the blocks around it."""
    outer = _on_pause.get()

    def both(done: int, total: int) -> None:
        on_pause(done, total)
        outer(done, total)

    token = _on_pause.set(both)
    try:
        yield
    finally:
        _on_pause.reset(token)


@contextmanager
def unbroken() -> Iterator[None]:
    """No pauses in the block: it holds something that others wait for."""
    token = _on_pause.set(_nothing)
    try:
        yield
    finally:
        _on_pause.reset(token)


@contextmanager
def pausing_before(modules: Iterable[nn.Module]) -> Iterator[None]:
    """A pause before each run of these modules in the block."""
    with ExitStack() as hooks:
        for module in modules:
            hooks.enter_context(module.register_forward_pre_hook(lambda *_: pause()))
        yield
