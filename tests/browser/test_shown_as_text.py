"""What stands in an address is shown as text in a real page, where Streamlit's Markdown is read."""

from urllib.parse import urlencode

import pytest

from headlight.app.state.settings import SETTINGS
from tests.app.test_shown_as_text import MARK, PAYLOADS

LABEL = SETTINGS["beginning"].label
pytestmark = pytest.mark.browser
START = dict(model="uneven", source="the dog", target="Ein Hund")
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


@pytest.mark.parametrize(
    ("path", "more", "key"),
    [("", {}, "changes"), ("attribution", {"score_at": 1}, "score_token"),
     ("generate", {}, "beginning")],
)  # fmt: skip
def test_an_address_puts_nothing_but_text_into_an_error(visit, path, more, key):
    payload = f"[Log in {MARK}](http://x.example) www.x.example _a_ :material_add:"
    visit.open(f"{path}?{urlencode(START | more | {key: payload})}")
    expect_text(alert(visit), payload)


def test_every_payload_is_text(visit):
    """On one page, one after the other."""
    visit.open(f"generate?{urlencode(START)}")
    visit.page.get_by_role("button", name="Branches").click()
    visit.idle()
    for payload in PAYLOADS:
        payload = " ".join(payload.split())  # a line of text holds no others
        visit.type(payload, LABEL)
        expect_text(alert(visit), payload)
