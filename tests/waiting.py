"""Waiting for what must come, instead of for a time."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[..., object], *arguments, seconds: float = 60) -> None:
    """Polls; fails where the condition does not become true, which may take long beside others."""
    end = time.monotonic() + seconds
    while not condition(*arguments):
        assert time.monotonic() < end, f"not so within {seconds} s"
        time.sleep(0.005)
