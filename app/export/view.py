"""A trace with its display options: the input of every exported file. No Streamlit."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from headlight.app.components.packing import GridOptions
from headlight.app.state import settings
from headlight.app.state.pages import HOME, PAGES
from headlight.app.text import part_names
from headlight.model.analysis.reading import LabelledWeights, Reading
from headlight.model.probing.sites import Place
from headlight.model.probing.trace import Trace


@dataclass(frozen=True)
class View:
    """A trace with its display options. `settings`: those of the top bar and of `page`, which a
    link leads to; `grid_options`: holds the selected head, counted from 0."""

    trace: Trace
    settings: Mapping
    reading: Reading
    look: GridOptions
    page: str = HOME

    @property
    def head(self) -> Place:
        """The selected one."""
        return Place(**self.look.focus)

    @property
    def name(self) -> str:
        return part_names.picture_name(self.trace, self.head, self.reading.average)

    @property
    def picture(self) -> LabelledWeights:
        """The selected head, or a mean, with the display options applied."""
        kind, layer, head = self.head
        weights = self.trace.attention[kind]
        return self.reading.apply(weights, layer, head, *self.trace.texts_of(kind))


def stem(view: View, what: str = "") -> str:
    """A file name without extension: the model, then `what`, or else kind, layer and head."""
    model, step = view.settings["model"], view.settings["step"]
    kind, layer, head = view.head
    number = part_names.layer_number(view.trace, kind, layer)
    parts = {
        "": f"layer-{number}-head-{head + 1}",
        "heads": f"layer-{number}-mean-over-heads",
        "layers": f"head-{head + 1}-mean-over-layers",
        "both": "mean-over-all-heads",
    }
    step = f"-step-{step}" if step.isdecimal() else ""
    name = f"{model}{step}-{what or f'{kind}-{parts[view.reading.average]}'}"
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-.") or "headlight"


def settings_json(view: View) -> bytes:
    return json.dumps(dict(view.settings), indent=2, ensure_ascii=False).encode("utf-8")


def permalink(chosen: Mapping, page: str) -> str:
    """The query string of a link to this view."""
    as_text = {
        key: settings.SETTINGS[key].as_text(value) for key, value in chosen.items() if value != ""
    }
    return f"{PAGES[page].path}?{urlencode(as_text, doseq=True)}"
