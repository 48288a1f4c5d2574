"""A text as the tokens that the model reads, shown as typed."""

import html

import streamlit as st

from model.tokenizer import Encoding

STYLE = """<style>
.hl-tokens { display: flex; flex-wrap: wrap; gap: 0.3rem; align-items: baseline; }
.hl-tokens b { min-width: 4.5rem; font-weight: 600; }
.hl-tokens span { padding: 0.05rem 0.45rem; border: 1px solid rgba(128, 128, 128, 0.55);
  border-radius: 0.35rem; font-size: 1.15rem; white-space: pre; }
</style>"""


def token_line(name: str, encoding: Encoding) -> None:
    """One line: the name of the side, then each token in a frame."""
    framed = "".join(f'<span dir="auto">{html.escape(token)}</span>' for token in encoding.tokens)
    st.html(f'{STYLE}<div class="hl-tokens"><b>{html.escape(name)}</b>{framed}</div>')
