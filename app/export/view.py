"""A trace and how it is seen: the input of every exported file. No Streamlit."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from headlight.app.state import settings
from headlight.app.state.pages import HOME, PAGES
from headlight.app.text import part_names
from headlight.model.probing.sites import Place
from headlight.model.probing.trace import Trace


@dataclass(frozen=True)
class View:
    """A trace and how it is seen. `settings`: those of the top bar and of `page`, which a link
    leads to; `head`: the selected one, counted from 0; `off`: kind → tiles (layer × heads + head)
    of heads that are; `hidden`: side → tokens that nobody attends to."""

    trace: Trace
    settings: Mapping
    head: Place
    off: Mapping[str, Sequence[int]] = field(default_factory=dict)
    hidden: Mapping[str, Sequence[int]] = field(default_factory=dict)
    page: str = HOME

    @property
    def name(self) -> str:
        return part_names.picture_name(self.trace, self.head, "")


def stem(view: View, what: str = "") -> str:
    """A file name without extension: the model, then `what`, or else kind, layer and head."""
    model, step = view.settings["model"], view.settings["step"]
    kind, layer, head = view.head
    number = part_names.layer_number(view.trace, kind, layer)
    step = f"-step-{step}" if step.isdecimal() else ""
    name = f"{model}{step}-{what or f'{kind}-layer-{number}-head-{head + 1}'}"
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-.") or "headlight"


def settings_json(view: View) -> bytes:
    return json.dumps(dict(view.settings), indent=2, ensure_ascii=False).encode("utf-8")


def permalink(chosen: Mapping, page: str) -> str:
    """The query string of a link to this view."""
    as_text = {
        key: settings.SETTINGS[key].as_text(value) for key, value in chosen.items() if value != ""
    }
    return f"{PAGES[page].path}?{urlencode(as_text, doseq=True)}"
