"""What stands in an address is shown as text in a real page, where Streamlit's Markdown is read."""

import re
from urllib.parse import urlencode

import pytest

from headlight.app.state.settings import SETTINGS
from tests.app.test_shown_as_text import MARK, PAYLOADS

LABEL = SETTINGS["changes"].label
pytestmark = pytest.mark.browser
QUOTED = 60  # characters of a text, at most
START = dict(model="uneven", source="the dog", target="Ein Hund")
ODD = [  # texts of all kinds
    "<script>window.broken = 1</script> </script> <b>bold</b> $x$ **bold** `code`",
    "🙂 a man 👩‍👩‍👧",
    "שלום עולם",
    "a\x07man",
    "ქართული 中文",
]
# Of an element: what is seen of it, and all that it is made of; empty spans part texts.
MADE_OF = """(element) => [element.innerText,
  [...element.querySelectorAll("*")].map((inner) => inner.outerHTML)
    .filter((html) => !/^<p>|^<span style="font-size: [^"]*"><.span>$/.test(html))]"""


def expect_text(element, payload: str) -> None:
    text, others = element.evaluate(MADE_OF)
    assert " ".join(payload.split()) in " ".join(text.split())
    assert not others


def alert(visit):
    return visit.page.locator("[data-testid=stAlert] [data-testid=stMarkdownContainer]").first


def test_every_payload_is_text_wherever_it_is_typed_or_linked(visit):
    link = f"[Log in {MARK}](http://x.example) www.x.example _a_ :material_add:"
    visit.open(f"inside?{urlencode(START | {'changes': link})}")
    expect_text(alert(visit), link)
    visit.unfold()
    payloads = [" ".join(payload.split()) for payload in PAYLOADS]  # of one line
    blocks = [payload for payload in payloads if re.match(r"[#>|`~+=-]|1[.)]", payload)]
    lines = [""]
    for payload in (payload for payload in payloads if payload not in blocks):
        if len(lines[-1]) + len(payload) >= QUOTED:
            lines.append("")
        lines[-1] = f"{lines[-1]} {payload}".strip()
    for text in (*blocks, *lines):
        visit.type(text, LABEL)
        expect_text(alert(visit), text.split(";")[0])  # one change ends there
    visit.open(f"?{urlencode(START)}")
    for text in ODD:
        visit.type(text)
        shown = "".join(visit.page.locator(".stage .words .w").all_text_contents())
        assert visit.page.evaluate("window.broken") is None
        for part in ("<b>", "**", "$") if "<b>" in text else ():
            assert part in shown.replace("·", "")
