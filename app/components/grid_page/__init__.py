"""All heads in one HTML file that needs no server and no network."""

import base64
import html
import json
import re
from dataclasses import asdict

from app.components.packing import Look
from app.components.scripts import read, script
from app.theme import INK, PAPER, PRIMARY

THEMES = ("auto", "light", "dark")


def grid_page(
    packed: bytes, look: Look, title: str, theme: str = "auto", focus: bool = False
) -> str:
    """A page with what `pack` gave, shown as `look` says; pointing and clicking work as in
    the app. With `focus`, the selected head is below it in full. With theme "auto" it is as light
    or dark as what is around it: the notebook that shows it in a frame, else the system. Raises
    ValueError for a theme that there is not."""
    if theme not in THEMES:
        raise ValueError(f"{theme!r} is none of {', '.join(map(repr, THEMES))}")
    themes = {
        name: {
            "--paper": PAPER[name],
            "--st-text-color": INK[name],
            "--st-primary-color": PRIMARY[name],
        }
        for name in ("light", "dark")
    }
    settings = {"look": asdict(look), "theme": theme, "themes": themes, "large": focus}
    parts = {
        "title": html.escape(title),
        "css": read("head_grid/style.css"),
        "js": script("grid_page/index.js"),
        "look": json.dumps(settings).replace("<", "\\u003c"),  # no token ends the script
        "weights": base64.b64encode(packed).decode("ascii"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], read("grid_page/page.html"))
