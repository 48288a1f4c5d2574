"""Garbage collection between runs, for all sessions."""

import gc
import itertools

COLLECT_EVERY = 50  # script runs of all sessions


_script_runs = itertools.count(1)  # script runs of all sessions


def collect_garbage() -> None:
    """Collect garbage after every COLLECT_EVERY runs; otherwise what closed sessions leave behind
    stays for long."""
    if next(_script_runs) % COLLECT_EVERY == 0:
        gc.collect()
