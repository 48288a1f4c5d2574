"""Texts of the page Tokenizer: merges, and the origin of each token."""

from collections.abc import Sequence

from headlight.model.sites import Side
from headlight.model.tokenizer import Encoding


def no_merges(kind: str) -> str:
    """A sentence on a tokenizer other than BPE."""
    return (
        f"This model's tokenizer is {kind}, not BPE, so it has no merges to show. Only its "
        "normalisation, pre-tokens and tokens are shown."
    )


def merged(n_symbols: int, n_tokens: int, n_shown: int, n_learned: int) -> str:
    """A sentence on the merges of a pre-token, and on how many of them are shown."""
    learned = f"Rank 1 was learned first, rank {n_learned:,} last."
    if n_symbols - n_tokens > n_shown:
        return f"The first {n_shown} of {n_symbols - n_tokens:,} merges. {learned}"
    result = "one token" if n_tokens == 1 else f"{n_tokens} tokens"
    return f"No more neighbours can be merged: {result}. {learned}"


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
