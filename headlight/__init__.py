"""Headlight shows what every attention head of a Transformer attends to.

from headlight import load, show

show(load("en-de").trace("A dog runs."))

"""

from importlib import import_module
from pathlib import Path

__version__ = "0.1.0"
HERE = Path(__file__).resolve().parent
# In a checkout the folders lie beside this one. Editors, type checkers and linters find them by the
# links in it; nothing else needs these, and on Windows git may not have made them.
if (HERE / "app").is_symlink() or not (HERE / "app").is_dir():
    __path__ = [str(HERE.parent), str(HERE)]

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
