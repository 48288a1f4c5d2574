"""Settings, views and bundles as tests of several files make them."""

import io
import zipfile

from app import theme
from app.components.packing import Look
from app.export.view import View
from app.settings import SETTINGS, shared
from model.analysis.reading import Reading


def complete(chosen) -> dict:
    """The settings that a file holds where only some were chosen."""
    defaults = {key: setting.default for key, setting in SETTINGS.items() if not setting.pages}
    return shared(defaults | dict(chosen), "")


def view_of(trace, kind="cross", layer=2, head=1, reading=Reading(), **looks) -> View:
    chosen = {"kind": kind, "layer": layer + 1, "head": head + 1, "model": "en-de", "source": "A"}
    looks = {"show": "all", "scale": "linear", "order": {}} | looks
    focus = {"kind": kind, "layer": layer, "head": head}
    look = Look(
        focus=focus, average=reading.average, least=reading.least, palette=theme.WEIGHTS,
        colour=theme.FOCUS, **looks,
    )  # fmt: skip
    return View(trace, complete(chosen), reading, look)


def files_of(bundle: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
