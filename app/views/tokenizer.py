"""The tokenizer step by step: normalisation, pre-tokens, merges, tokens with ids."""

from collections import Counter
from contextlib import suppress
from itertools import groupby, islice

import pandas as pd
import streamlit as st

from headlight.app import selection
from headlight.app.components.token_tiles import row, token_tiles
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.text import exercises
from headlight.app.text.exercises import Exercise
from headlight.app.views import _token_table
from headlight.model.analysis.tokenization import merges
from headlight.model.probing.sites import sides_of
from headlight.model.probing.trace import CannotRead, read_of
from headlight.model.tokenizer import Tokenizer, visible

INVENTED = "snowdogging"
MOST_STEPS, MOST_WORDS, MOST_CHARACTERS = 30, 200, 200  # that are shown


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
    notes = [] if as_tokenized else [_token_table.WRITTEN]
    if tokenizer.kind != "BPE":
        notes.append(_token_table.no_merges(tokenizer.kind))
    elif words:
        start = tokenizer.first_symbols(words[chosen])
        steps = list(islice(merges(tokenizer, words[chosen]), MOST_STEPS))
        rows = [row("start", [*map(tokenizer.readable, start)])] + [
            row(f"merge {s.rank + 1:,}", [*map(tokenizer.readable, s.symbols)], s.at) for s in steps
        ]
        own = [at for at, word in enumerate(word_ids) if word == chosen]
        tokens, ids = [spelled.tokens[at] for at in own], [spelled.ids[at] for at in own]
        frame.finding(_token_table.finding(names[chosen], tokens, ids, len(steps)))
        left = len(start) - n_tokens[chosen], len(steps), len(tokenizer.merges)
        notes.append(_token_table.merged(*left))
    if len(words) > MOST_WORDS:
        notes.append(f"Only the first {MOST_WORDS} of {len(words):,} pre-tokens are shown.")
    sources = [options[i] for i in word_ids] if as_tokenized else None
    tokens = _token_table.token_rows(side, encoding, read[side.name], sources)
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
    token_tiles(data, "token_tiles", chosen=lambda at: session.choose(word=options[at]))
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
