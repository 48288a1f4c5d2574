"""All heads in one HTML file that needs no server and no network."""

import base64
import html
import json
import re
from dataclasses import asdict

from headlight.app.components.packing import GridOptions
from headlight.app.components.scripts import read, script
from headlight.app.theme import INK, PAPER, PRIMARY

THEMES = ("auto", "light", "dark")


def grid_page(
    packed: bytes, look: GridOptions, title: str, theme: str = "auto", focus: bool = False
) -> str:
    """A page of packed weights, displayed as `grid_options` says; it responds to pointer and clicks
    as in the app. With `focus`, the selected head is beside them in full. Theme "auto" follows the
    notebook that frames it, or else the system. Raises ValueError for an unknown theme."""
    if theme not in THEMES:
        raise ValueError(f"{theme!r} is not one of {', '.join(map(repr, THEMES))}")
    themes = {
        name: {
            "--st-background-color": PAPER[name],
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
        # a token such as </script> must not end the script
        "look": json.dumps(settings).replace("<", "\\u003c"),
        "weights": base64.b64encode(packed).decode("ascii"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], read("grid_page/page.html"))
