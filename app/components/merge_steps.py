"""The merges of a word as a table: one row per merge, with its rank and the symbols after it."""

import html
from collections.abc import Callable, Sequence

import streamlit as st

from headlight.app.components.token_line import STYLE as TOKENS
from headlight.app.components.token_line import framed
from headlight.model.analysis.tokenization import Merge

MOST_SYMBOLS = 60  # of a row
STYLE = """<style>
.hl-merges { overflow-x: auto; }
.hl-merges table { border-collapse: collapse; }
.hl-merges th { text-align: left; font-weight: 600; padding: 0 0.6rem 0 0; }
.hl-merges td { padding: 0 0.6rem 0 0; white-space: pre; }
.hl-merges td { vertical-align: baseline; line-height: 1.7; }
.hl-merges td:first-child { text-align: right; font-variant-numeric: tabular-nums; }
.hl-merges .hl-tokens { flex-wrap: nowrap; gap: 0.15rem; }
.hl-merges .hl-tokens span { padding: 0 0.3rem; line-height: 1.35; }
</style>"""


def merge_steps(
    word: str, start: Sequence[str], steps: Sequence[Merge], readable: Callable[[str], str]
) -> None:
    """`start`: the symbols before the first merge; `readable`: makes a symbol readable."""
    rows = [("", "start", _symbols([*map(readable, start)]))]
    for step in steps:
        left, right, merged = (
            f"<bdi>{html.escape(readable(symbol))}</bdi>"
            for symbol in (*step.pair, step.symbols[step.at])
        )
        symbols = _symbols([*map(readable, step.symbols)], step.at)
        rows.append((f"{step.rank + 1:,}", f"{left} + {right} → {merged}", symbols))
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    st.html(
        f'{TOKENS}{STYLE}<div class="hl-merges" tabindex="0" role="region" '
        f'aria-label="Merges of {html.escape(word, quote=True)}"><table><thead><tr>'
        "<th>Rank</th><th>Merge</th><th>Symbols</th></tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _symbols(texts: Sequence[str], focus: int = -1) -> str:
    """The symbols in frames; if there are many, only those around the new one."""
    first = max(0, min(focus - MOST_SYMBOLS // 2, len(texts) - MOST_SYMBOLS))
    last = first + MOST_SYMBOLS
    before = f"{first:,} … " * (first > 0)
    after = f" … {len(texts) - last:,}" * (len(texts) > last)
    return (
        f'<div class="hl-tokens" dir="ltr">{before}{framed(texts[first:last], focus - first)}'
        f"{after}</div>"
    )
