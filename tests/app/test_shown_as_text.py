"""Whatever is typed, or stands in an address, is shown as text, on every page: no link, picture,
icon, style or formula is made of it. browser/test_shown_as_text.py sees the same in a real page.
"""

import re
from collections.abc import Iterator

import pytest

from headlight.app.state.pages import PAGES
from headlight.app.state.settings import SETTINGS
from tests.app.common import plain_text
from tests.conftest import ROOT

MARK = "qxq"  # of a payload, by which it is found on a page
PAYLOADS = [
    "[qxq](http://x.example)", "![qxq](http://x.example/y.png)", "<http://qxq.example>",
    "http://qxq.example/a?b=c&d", "HTTPS://qxq.example", "www.qxq.example", "qxq@mail.example",
    "[qxq]: http://x.example\n\n[qxq]", "*qxq*", "**qxq**", "_qxq_", "__qxq__", "~~qxq~~",
    "`qxq`", "``` qxq", "```\nqxq\n```", "~~~\nqxq\n~~~", "# qxq", "qxq\n===", "qxq\n---",
    "> qxq", "- qxq", "1. qxq", "1) qxq", "+ qxq\n***", "    qxq", "qxq\n\n    code",
    "| qxq | b |\n|---|---|\n| c | d |", "$qxq^2$", "$$qxq$$", ":red[qxq]",
    ":blue-background[qxq] :green-badge[b]", "::qxq[b]", ":material/qxq: qxq",
    ":material_qxq: qxq", ":streamlit: qxq", ":smile: qxq :+1:", "<b>qxq</b>",
    "<script>qxq()</script>", "<img src=x onerror=qxq()>", "<!-- a -->qxq", "&lt;qxq&copy;&#42;",
    "\\*qxq\\* \\\\ \\", "qxq -> a <- b <-> c -- d >= e <= f ~= g", "qxq  \na\\\nb",
    "“qxq” … e\u0301 हिन्दी 🙂 \u202f%",
]  # fmt: skip
TYPED = [key for key, setting in SETTINGS.items() if setting.widget in ("line", "area")]
START = dict(model="uneven", source="the dog", target="Ein Hund", score_at="1")
# Payloads in a text, more would be cut where they are quoted; or each alone, at its beginning.
TOGETHER = [10, pytest.param(1, marks=pytest.mark.long)]


def markdown_of(block) -> Iterator[str]:
    """All that a page hands to Streamlit as Markdown."""
    for element in block.children.values():
        if element.type not in ("html", "code", "text"):
            texts = (getattr(element.proto, name, "") for name in ("body", "label", "help", "text"))
            yield from (text for text in texts if isinstance(text, str))
        if hasattr(element, "children"):
            yield from markdown_of(element)


def quoted(page, payloads) -> int:
    """How many texts of a page quote one of the payloads; each does so as text."""
    assert not page.exception, page.exception[0].message
    quoting = [text for text in markdown_of(page._tree) if MARK in text]
    for markdown in quoting:
        text = " ".join(plain_text(markdown).split())
        whole = any(" ".join(payload.split()) in text for payload in payloads)
        assert whole or f"“{MARK}”" in text, markdown  # a page may quote a word of it
    return len(quoting)


def open_page(page, entry, **chosen):
    page.session_state["what_if"] = True
    page.query_params.update(START | chosen)
    return page.switch_page(entry.key).run()


def test_errors_are_shown_in_one_place():
    """Which escapes them; a page may name the box."""
    shown = {}
    for file in (ROOT / "app").rglob("*.py"):
        if lines := re.findall(r".*(?:st|verdict)\.error\b.*", file.read_text(encoding="utf-8")):
            shown[file.name] = len(lines)
    assert shown == {"messages.py": 1, "share.py": 1}
    assert "verdict.error(" not in (ROOT / "app/views/share.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("together", TOGETHER)
@pytest.mark.parametrize("name", PAGES)
def test_text_that_is_typed_is_text_on_every_page(page, name, together):
    """Each text setting of the top bar with some of the payloads, all of them on some page; a
    page's own with all."""
    page, turn = open_page(page, PAGES[name]), list(PAGES).index(name)
    batches = [PAYLOADS[i : i + together] for i in range(0, len(PAYLOADS), together)]
    pages, typed = min(len(PAGES), len(batches)), []
    for i, key in enumerate(TYPED):
        if not SETTINGS[key].pages:
            tried = batches[(turn + i) % pages :: len(PAGES)]
        elif name in SETTINGS[key].pages:
            tried = batches
        else:
            continue
        before = page.session_state[key] if key in page.session_state else SETTINGS[key].default
        count = 0
        for payloads in tried:
            page.session_state[key] = " ".join(payloads)
            typed += payloads  # what was compared with is named until something else is
            count += quoted(page.run(), typed)
        page.session_state[key] = before
        reads = PAGES[name].run and PAGES[name].changes
        if key == "changes" and reads:
            assert count >= len(tried)  # each is quoted in an error
