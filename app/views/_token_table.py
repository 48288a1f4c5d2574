"""Texts of the page Tokenizer: merges, and the origin of each token."""

from collections.abc import Sequence

from headlight.app.text.formats import escaped
from headlight.model.sites import Side
from headlight.model.tokenizer import Encoding

MOST_NAMED = 8  # tokens of a word
WRITTEN = (
    "The model wrote these tokens one by one; the tokenizer would split the same text differently."
)


def no_merges(kind: str) -> str:
    """A sentence on a tokenizer other than BPE."""
    return (
        f"This model's tokenizer is {kind}, not BPE, so it has no merges to show. Only its "
        "normalisation, pre-tokens and tokens are shown."
    )


def merged(n_merges: int, n_shown: int, n_learned: int) -> str:
    """A sentence on the merges of a pre-token, and on how many of them are shown."""
    learned = f"Merge 1 was learned first, merge {n_learned:,} last."
    shown = f"The first {n_shown} of {n_merges:,} merges. " if n_merges > n_shown else ""
    return shown + learned


def finding(word: str, tokens: Sequence[str], ids: Sequence[int], n_merges: int) -> str:
    """A sentence, in Markdown, on what becomes of a pre-token."""
    after = f", after {n_merges} merge{'s' * (n_merges != 1)}" if n_merges else ""
    if len(ids) == 1:
        number = f"The model reads its number: **{ids[0]:,}**."
        return f"**{escaped(word)}** is one token{after}. {number}"
    parts = " · ".join(f"**{escaped(token)}**" for token in tokens[:MOST_NAMED])
    rest = " …" if len(tokens) > MOST_NAMED else ""
    return f"**{escaped(word)}** becomes {len(ids)} tokens{after}: {parts}{rest}"


def token_rows(
    side: Side, text: Encoding, read: Encoding, sources: Sequence[str] | None
) -> list[dict]:
    """The tokens of a side, one row each, with their origin: a pre-token of the text (`sources`),
    or the part of the program that added them."""
    padding = len(read.ids) - len(text.ids) - side.begins - side.ends
    origins = [
        *[f"start of every {side.title}"] * side.begins,
        *(sources or ["the model"] * len(text.ids)),
        *[f"end of every {side.title}"] * side.ends,
        *["padding"] * padding,
    ]
    return [
        {
            "token": token,
            "id": token_id,
            "start": None if role else start,
            "end": None if role else end,
            "from": origin,
        }
        for token, token_id, (start, end), role, origin in zip(
            read.tokens, read.ids, read.offsets, read.roles, origins, strict=True
        )
    ]
