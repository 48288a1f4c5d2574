"""A text as the tokens that the model reads, shown as typed."""

import html
from collections.abc import Mapping, Sequence

import streamlit as st

from headlight.app.theme import FOCUS

STYLE = f"""<style>
.hl-tokens {{ display: flex; flex-wrap: wrap; gap: 0.3rem; align-items: baseline; }}
.hl-tokens b {{ min-width: 4.5rem; font-weight: 600; }}
.hl-tokens span {{ padding: 0.05rem 0.45rem; border: 1px solid rgba(128, 128, 128, 0.55);
  border-radius: 0.35rem; font-size: 1.15rem; white-space: pre; unicode-bidi: isolate; }}
.hl-tokens span.hl-focus {{ border-color: {FOCUS}; box-shadow: inset 0 0 0 1px {FOCUS}; }}
.hl-lines {{ display: grid; grid-template-columns: auto 1fr; gap: 0.35rem 0.8rem; }}
.hl-lines > b {{ font-weight: 600; }}
.hl-lines > .hl-tokens {{ max-height: 6.3rem; overflow: auto; min-width: 0; }}
.hl-lines span {{ font-size: 1.05rem; max-width: 100%; overflow: hidden; text-overflow: ellipsis; }}
</style>"""


def framed_lines(lines: Mapping[str, Sequence[str]], focus: int) -> None:
    """Lines of framed texts, each with a name; `focus` marks one text of the last line."""
    last = list(lines)[-1]
    body = "".join(
        f'<b>{html.escape(name)}</b><div class="hl-tokens" tabindex="0" role="region" '
        f'aria-label="{html.escape(name, quote=True)}">'
        f"{framed(texts, focus if name == last else -1)}</div>"
        for name, texts in lines.items()
    )
    st.html(f'{STYLE}<div class="hl-lines">{body}</div>')


def framed(texts: Sequence[str], focus: int = -1) -> str:
    """Each text in a frame, as HTML inside .hl-tokens."""
    marks = (' class="hl-focus"' if i == focus else "" for i in range(len(texts)))
    return "".join(
        f'<span dir="auto"{mark}>{html.escape(text)}</span>'
        for text, mark in zip(texts, marks, strict=True)
    )
