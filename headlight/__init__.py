"""Headlight shows what every attention head of a Transformer attends to.

>>> from headlight import load, show
>>> show(load("en-fr").trace("A dog runs."))
<What every head attends to>
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
HERE = Path(__file__).resolve().parent
# In a checkout the folders lie beside this one. Editors, type checkers and linters find them by the
# links in it; nothing else needs these, and on Windows git may not have made them.
if (HERE / "app").is_symlink() or not (HERE / "app").is_dir():
    __path__ = [str(HERE.parent), str(HERE)]

OF_THE_APP = {"open": "in_process", "show": "export.notebook"}  # name → its module in app/

if TYPE_CHECKING:
    from headlight.app.export import check as check
    from headlight.app.export.checkup import checkup as checkup
    from headlight.app.export.notebook import show as show
    from headlight.app.in_process import open as open
    from headlight.model import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """`open`, `show` and the public names of model/ (its `__all__`), imported when first used:
    PyTorch alone takes seconds, and the app answers before that."""
    if name == "check":
        return import_module("headlight.app.export.check")
    if name == "checkup":
        return import_module("headlight.app.export.checkup").checkup
    if name in OF_THE_APP:
        return getattr(import_module(f"headlight.app.{OF_THE_APP[name]}"), name)
    if name == "__all__" or not name.startswith("_"):
        model = import_module("headlight.model")
        if name == "__all__":
            return ["check", "show", *model.__all__]  # `open` would hide Python's
        if name in model.__all__:
            return getattr(model, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "open", "checkup", *__getattr__("__all__")})
