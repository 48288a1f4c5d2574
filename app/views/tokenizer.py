"""The tokenizer step by step: normalisation, pre-tokens, merges, tokens with ids."""

from collections import Counter
from contextlib import suppress
from itertools import islice

import pandas as pd
import streamlit as st

from headlight.app import selection
from headlight.app.components.merge_steps import merge_steps
from headlight.app.components.token_line import framed_lines
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.text import exercises
from headlight.app.text.exercises import Exercise
from headlight.app.theme import MARKED
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
    whole_text, one_word = st.columns([3, 2])
    side, text, encoding = by_title[title]
    tokenizer = model.tokenizer.target if side.writes else model.tokenizer
    words = [word for word, _ in tokenizer.pre_tokens(text)]
    names = [tokenizer.readable(word) for word in words]
    word_ids = tokenizer.word_ids(text)
    n_tokens = Counter(word_ids)

    with one_word:
        chosen, options = -1, []
        if words:
            options = [f"{i} {name[:MOST_CHARACTERS]}" for i, name in enumerate(names, start=1)]
            most_split = max(range(len(words)), key=lambda i: (n_tokens[i], len(words[i])))
            chosen = options.index(
                widgets.draw("word", options=options, default=options[most_split])
            )
        if tokenizer.kind != "BPE":
            st.info(_token_table.no_merges(tokenizer.kind))
        elif words:
            start = tokenizer.first_symbols(words[chosen])
            steps = list(islice(merges(tokenizer, words[chosen]), MOST_STEPS))
            merge_steps(names[chosen], start, steps, tokenizer.readable)
            st.caption(
                _token_table.merged(len(start), n_tokens[chosen], len(steps), len(tokenizer.merges))
            )
            spelled = tokenizer.encode(text)
            own = [at for at, word in enumerate(word_ids) if word == chosen]
            tokens, ids = [spelled.tokens[at] for at in own], [spelled.ids[at] for at in own]
            frame.finding(_token_table.finding(names[chosen], tokens, ids, len(steps)))

    with whole_text:
        normalized = visible(tokenizer.normalized(text))
        framed_lines(
            {
                "Text": [text[:MOST_CHARACTERS]],
                "Normalised": [normalized[:MOST_CHARACTERS]],
                "Pre-tokens": names[:MOST_WORDS],
            },
            focus=chosen,
        )
        if len(words) > MOST_WORDS:
            st.caption(f"Only the first {MOST_WORDS} of {len(words):,} pre-tokens are shown.")
        # A model's output may be split differently than the tokenizer would split the same text.
        as_tokenized = encoding.ids == tokenizer.encode(text).ids
        sources = [options[i] for i in word_ids] if as_tokenized else None
        table = pd.DataFrame(_token_table.token_rows(side, encoding, read[side.name], sources))
        marked = (table["from"] == (options[chosen] if words else "")).to_dict()
        st.dataframe(
            table.astype({"start": "Int64", "end": "Int64"}).style.apply(
                lambda row: [f"background-color: {MARKED}" if marked[row.name] else ""] * len(row),
                axis=1,
            ),
            hide_index=True,
            height=360,
            key="token_table",
            alt=f"The tokens of the {title}, with ids and offsets",
        )
        if not as_tokenized:
            st.caption(
                "The model wrote these tokens one by one; the tokenizer would split the same text "
                "differently."
            )
    frame.explain(
        "Byte-pair encoding (BPE, Sennrich et al. 2016) repeatedly merges the two neighbouring "
        "symbols that occur together most often. A typed word starts as single bytes. The merges "
        "are then applied in the order in which they were learned.",
        exercise_of(tokenizer),
    )
