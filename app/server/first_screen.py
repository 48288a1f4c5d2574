"""The sentence, in the document itself: it stands on the screen while Streamlit's scripts are
loaded and the model reads it. The stage takes it away as soon as it has something to show."""

from functools import cache
from html import escape
from pathlib import Path
from urllib.parse import parse_qs

EXAMPLES = Path(__file__).resolve().parents[2] / "assets" / "examples"
# The address of a lesson or a room does not tell the text; a frame has no room for a header.
UNTOLD = "lesson", "room", "alone", "embed"
MOST = 400  # letters
opens = "en-fr"  # the model where an address names none, catalog.DEFAULT_MODEL; "": not one of ours


@cache
def _examples() -> dict[str, str]:
    """Model → its first example."""
    return {file.stem: _first_line(file.read_text("utf-8")) for file in EXAMPLES.glob("*.txt")}


def _first_line(text: str) -> str:
    return next(filter(None, map(str.strip, text.split("\n"))), "")


def first_screen(path: str, query: bytes) -> bytes:
    """HTML with the sentence that an address of the app opens; empty where it does not tell."""
    told = parse_qs(query.decode("latin-1"))
    if path.strip("/") or any(key in told for key in UNTOLD):
        return b""
    model = told.get("model", [opens])[-1]
    source = told.get("line", told.get("source", [""]))[-1]
    text = (_first_line(source) or _examples().get(model, "")).partition("\t")[0]
    if not text:
        return b""
    text = text if len(text) <= MOST else f"{text[:MOST]} …"
    look = " class=present" if told.get("projector") == ["true"] else ""
    words = f"<p>{escape(text)} <i>{escape(model)} →</i></p>"
    wait = "<p>The model reads the sentence. The first time this takes some seconds.</p>"
    return f'<div id="hl-first"{look}><b>Headlight</b>{words}{wait}</div>'.encode()
