"""A text as the pieces that the model reads, shown as typed."""

import html

import streamlit as st

from model.tokenizer import Encoding

STYLE = """<style>
.hl-pieces { display: flex; flex-wrap: wrap; gap: 0.3rem; align-items: baseline; }
.hl-pieces b { min-width: 4.5rem; font-weight: 600; }
.hl-pieces span { padding: 0.05rem 0.45rem; border: 1px solid rgba(128, 128, 128, 0.55);
  border-radius: 0.35rem; font-size: 1.15rem; white-space: pre; }
</style>"""


def pieces(name: str, encoding: Encoding) -> None:
    """One line: the name of the side, then each piece in a frame of its own."""
    framed = "".join(f'<span dir="auto">{html.escape(piece)}</span>' for piece in encoding.tokens)
    st.html(f'{STYLE}<div class="hl-pieces"><b>{html.escape(name)}</b>{framed}</div>')
