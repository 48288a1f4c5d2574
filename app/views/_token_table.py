"""What the page Tokenizer says: of merges, and of each token where it comes from."""

from collections.abc import Sequence

from model.tokenizer import Encoding
from model.transformer import Side


def no_merges(kind: str) -> str:
    """A sentence on a tokenizer that is no BPE."""
    return (
        f"This model's tokenizer is {kind}, not BPE: it has no merges to show. Its normalisation, "
        "pre-tokens and tokens are its own."
    )


def merged(n_symbols: int, n_tokens: int, n_shown: int, n_learned: int) -> str:
    """A sentence on the merges of a pre-token of so many symbols, of which some are shown."""
    learned = f"Rank 1 was learned first, rank {n_learned:,} last."
    if n_symbols - n_tokens > n_shown:
        return f"The first {n_shown} of {n_symbols - n_tokens:,} merges. {learned}"
    result = "one token" if n_tokens == 1 else f"{n_tokens} tokens"
    return f"No other pair of neighbours can be merged: {result}. {learned}"


def token_rows(
    side: Side, text: Encoding, read: Encoding, sources: Sequence[str] | None
) -> list[dict]:
    """The tokens that a side reads, one row each, and where each comes from: of the text, of which
    `sources` tell more, or what adds it."""
    padding = len(read.ids) - len(text.ids) - side.begins - side.ends
    origins = [
        *[f"begins every {side.title}"] * side.begins,
        *(sources or ["the model"] * len(text.ids)),
        *[f"ends every {side.title}"] * side.ends,
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
