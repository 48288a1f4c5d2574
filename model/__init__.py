"""Headlight's Transformer and the tools to look inside it."""
# ruff: noqa: F405

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headlight.model.public import *  # noqa: F403

__all__ = [
    "Beam", "Config", "Greedy", "Masks", "Run", "Sampling", "Trace", "Transformer", "build",
    "capture", "load", "load_foreign", "record", "save", "trace", "view",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """A public name, imported when first used: PyTorch alone takes seconds, and what a command's
    help says needs none."""
    if name in __all__:
        return getattr(import_module("headlight.model.public"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
