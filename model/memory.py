"""Available memory, and how malloc treats freed memory."""

import ctypes

import psutil

TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4  # glibc's malloc.h
LARGEST = 2**31 - 1


def available() -> int:
    """Bytes that can be allocated without swapping out other programs."""
    return psutil.virtual_memory().available


def keep_freed_memory() -> bool:
    """Have glibc's malloc keep freed memory for the next pass over the same shapes.

    By default it gives large blocks back to the system, which hands them out again page by page,
    zeroed: a third of the time of a small model's training step on a CPU. For programs that
    train or measure; the process stays as large as it has ever been. Elsewhere than on glibc it
    does nothing. Returns whether it did something.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    settings = {MMAP_MAX: 0, TRIM_THRESHOLD: LARGEST, TOP_PAD: 64 * 2**20}
    return all([mallopt(name, value) for name, value in settings.items()])
