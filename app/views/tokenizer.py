"""The tokenizer step by step: normalisation, pre-tokens, merges, tokens with ids."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby, islice

import pandas as pd
import streamlit as st

from headlight.app import selection
from headlight.app.components.token_tiles import token_tiles
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.text import exercises
from headlight.app.text.exercises import Exercise
from headlight.app.text.formats import escaped
from headlight.model.analysis.tokenization import merges
from headlight.model.probing.sites import sides_of
from headlight.model.probing.trace import CannotRead, read_of
from headlight.model.sites import Side
from headlight.model.tokenizer import Encoding, Tokenizer, visible

INVENTED = "snowdogging"
MOST_STEPS, MOST_SYMBOLS, MOST_WORDS, MOST_CHARACTERS = 30, 100, 200, 200  # that are shown
MOST_NAMED = 8  # tokens of a word
WRITTEN = (
    "The model wrote these tokens one by one; the tokenizer would split the same text differently."
)


def exercise_of(tokenizer: Tokenizer) -> Exercise | None:
    """None where the tokenizer cannot read the word."""
    with suppress(CannotRead):
        return exercises.invented_word(INVENTED, tokenizer.encode(INVENTED).tokens)
    return None


def page() -> None:
    run = selection.run(changed=False)
    model = selection.view(run)
    sides = sides_of(model.model)
    read = read_of(model.model, run)
    target = session.values()["target"].strip()
    decode = model.tokenizer.target.decode
    typed = [selection.text(), *(target or decode(text.ids) for text in run.texts[1:])]
    by_title = {
        side.title: (side, text, encoding)
        for side, text, encoding in zip(sides.values(), typed, run.texts, strict=True)
    }

    with frame.controls():
        title = widgets.draw("text", options=list(by_title), default=next(iter(by_title)))
    side, text, encoding = by_title[title]
    tokenizer = model.tokenizer.target if side.writes else model.tokenizer
    words = [word for word, _ in tokenizer.pre_tokens(text)]
    names = [tokenizer.readable(word) for word in words]
    options = [f"{i} {name[:MOST_CHARACTERS]}" for i, name in enumerate(names, start=1)]
    word_ids, spelled = tokenizer.word_ids(text), tokenizer.encode(text)
    # A model's output may be split differently than the tokenizer would split the same text.
    as_tokenized = encoding.ids == spelled.ids
    n_tokens, chosen, rows = Counter(word_ids), -1, []
    if words:
        most_split = max(range(len(words)), key=lambda i: (n_tokens[i], len(words[i])))
        wanted = session.values().get("word", "")
        chosen = options.index(wanted) if wanted in options else most_split
    notes = [] if as_tokenized else [WRITTEN]
    if tokenizer.kind != "BPE":
        notes.append(no_merges(tokenizer.kind))
    elif words:
        start = tokenizer.first_symbols(words[chosen])
        steps = list(islice(merges(tokenizer, words[chosen]), MOST_STEPS))
        rows = [
            {"name": name, "symbols": [*map(tokenizer.readable, symbols)], "at": at}
            for name, symbols, at in (
                ("start", start, -1),
                *((f"merge {step.rank + 1:,}", step.symbols, step.at) for step in steps),
            )
            if len(start) <= MOST_SYMBOLS
        ]
        own = [at for at, word in enumerate(word_ids) if word == chosen]
        tokens, ids = [spelled.tokens[at] for at in own], [spelled.ids[at] for at in own]
        frame.finding(finding(names[chosen], tokens, ids, len(steps)))
        left = len(start) - n_tokens[chosen], len(steps) if rows else 0, len(tokenizer.merges)
        notes.append(merged(*left))
    if len(words) > MOST_WORDS:
        notes.append(f"Only the first {MOST_WORDS} of {len(words):,} pre-tokens are shown.")
    sources = [options[i] for i in word_ids] if as_tokenized else None
    tokens = token_rows(side, encoding, read[side.name], sources)
    places = {option: at for at, option in enumerate(options)}
    grouped = groupby(tokens, lambda token: places.get(token["from"], -1))
    data = {
        "words": [
            {"choice": at, "tokens": [(token["token"], token["id"]) for token in some]}
            for at, some in islice(grouped, MOST_WORDS)
        ],
        "chosen": chosen,
        "rows": rows,
        "isDone": bool(rows) and len(rows[-1]["symbols"]) == n_tokens[chosen],
        "lines": [
            ("Normalised", visible(tokenizer.normalized(text))),
            ("Pre-tokens", "   ".join(names[:MOST_WORDS])),
        ],
        "notes": notes,
    }
    token_tiles(data, "token_tiles", chosen=lambda i: session.choose(word=[*options[i:], ""][0]))
    with frame.numbers(), st.expander("Every number"):
        st.dataframe(
            pd.DataFrame(tokens).astype({"start": "Int64", "end": "Int64"}),
            hide_index=True,
            key="token_table",
            alt=f"The tokens of the {title}, with ids and offsets",
        )
    frame.explain(
        "Byte-pair encoding (BPE, Sennrich et al. 2016) repeatedly merges the two neighbouring "
        "symbols that occur together most often. A typed word starts as single bytes. The merges "
        "are then applied in the order in which they were learned.",
        exercise_of(tokenizer),
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
    if n_merges > n_shown == 0:
        return f"Its {n_merges:,} merges are too many to be drawn. {learned}"
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
