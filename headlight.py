"""Headlight shows what every attention head of a Transformer attends to.

    from headlight import load, show

    show(load("en-de").trace("A dog runs."))

This module is the package, in a checkout as in an installation: headlight.app and headlight.model
are folders that `__path__` leads to.
"""

import sys
from importlib import import_module
from pathlib import Path

__version__ = "0.1.0"
HERE = Path(__file__).resolve().parent
INSTALLED = HERE / "headlight"
__path__ = [str(INSTALLED if INSTALLED.is_dir() else HERE)]

# Imported when first used: PyTorch alone takes seconds, and the app answers before that.
_MODULES = {"show": "headlight.app.notebook"} | dict.fromkeys(
    (
        "Beam",
        "Config",
        "Greedy",
        "Masks",
        "Run",
        "Sampling",
        "Trace",
        "Transformer",
        "build",
        "capture",
        "load",
        "load_foreign",
        "trace",
        "view",
    ),
    "headlight.model",
)
__all__ = [*_MODULES]


def __getattr__(name: str):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


if __name__ == "__main__":
    from headlight.app.server.command import main

    sys.exit(main())
