"""One head, one word: a row of a decoder reads one token and predicts the next, and each head is
labelled by the one that it follows, on every page and in every file."""

import csv
import io
import json
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest

from headlight.app.components.packing import pack_trace
from headlight.app.export import bertviz_html, notebook, pictures, tables
from headlight.app.lessons.sentence_run import NamedHead, SentenceRun
from headlight.app.text import part_names
from headlight.app.text.formats import escaped
from headlight.model import load
from headlight.model.analysis.reading import Reading
from headlight.model.checkpoint import SHIPPED
from headlight.model.probing.run import Run
from headlight.model.probing.sites import Place
from headlight.model.surveys.tables import spreadsheet_safe
from tests.app.common import view_of
from tests.app.test_packing import unpack
from tests.markup import inflated

TEXTS = {
    "copy": "a b c d", "reverse": "h e l l o", "sort": "d b a c", "induction": "a b c a b",
    "en-de": "A woman in a red dress reads.", "en-fr": "A small dog is not here.",
    "reviews": "not a good film", "english": "She has never seen the sea.",
}  # fmt: skip
PLACES = 100


@cache
def trace_of(name):
    return load(name).trace(TEXTS[name])


@cache
def places() -> list[tuple[str, str, int, int, int]]:
    """Model, kind, layer, head and row, drawn from all heads of the shipped models."""
    random, drawn = np.random.default_rng(0), []
    for name in random.choice(sorted(TEXTS), PLACES):
        attention = trace_of(str(name)).attention
        kind = str(random.choice(sorted(attention)))
        layers, heads, rows, _ = attention[kind].shape
        drawn.append((str(name), kind, *map(int, random.integers((layers, heads, rows)))))
    return drawn


def word_of(name, kind, layer, head, row, trace=None) -> str:
    """By hand, from the card and the tokens."""
    trace = trace or trace_of(name)
    tokens = trace.texts_of(kind)[0].tokens
    card = json.loads((SHIPPED / name / "config.json").read_text("utf-8"))["card"]
    read, predicted = card["alignment"]["agreement"] if kind == "cross" else ([], [])
    if kind != "cross" or predicted[layer][head] <= read[layer][head]:
        return tokens[row]
    return tokens[row + 1] if row + 1 < len(tokens) else "</s>"


def test_every_shipped_model_is_drawn_and_both_words_are_followed():
    drawn = places()
    assert {name for name, *_ in drawn} == set(TEXTS) == {one.name for one in SHIPPED.iterdir()}
    at_row = [trace_of(p[0]).texts_of(p[1])[0].tokens[p[-1]] == word_of(*p) for p in drawn]
    assert 20 <= sum(at_row) <= 90


def in_grid(packed, kind, layer, head, row) -> str:
    """As the grid reads its header."""
    header, _ = unpack(packed)
    (part,) = (part for part in header["parts"] if part["kind"] == kind)
    side = header["sides"][part["query"]]
    shifted = part["shifts"] and part["shifts"][layer * part["heads"] + head]
    return side["following" if shifted else "labels"][row]


@pytest.mark.parametrize("number", range(PLACES))
def test_the_word_is_the_same_everywhere(number):
    place = name, kind, layer, head, row = places()[number]
    trace, word = trace_of(name), word_of(*place)
    query, _ = part_names.axes(trace, Place(kind, layer, head))
    assert query.labels[row] == word  # figures on Attention and Compare, exported pictures
    assert not query.hover or word in query.hover[row]
    moment = re.search("just read|about to be written", query.title)
    stands = {"just read": "(next: ", "about to be written": "(read: "}
    assert bool(moment) == bool(query.hover)
    assert not moment or all(stands[moment[0]] in both for both in query.hover)
    assert trace.row_words(kind, layer, head)[row] == word  # Inside, and Query, key, value
    assert in_grid(pack_trace(trace, Reading()), kind, layer, head, row) == word
    if kind == "cross":
        lesson = SentenceRun(load(name), name, TEXTS[name])
        shift = int(lesson.checkpoint.alignment.shifts[layer, head])
        assert lesson.label(NamedHead(kind, layer, head, shift), row) == word
    view = view_of(trace, kind, layer, head)
    _, _, _, columns = trace.attention[kind].shape
    text = tables.csv(view, one_head=True).decode("utf-8")
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    assert lines[row * columns]["row_word"] == spreadsheet_safe(word)
    whole = pd.read_parquet(io.BytesIO(tables.parquet(view)))
    rows = whole.query("attention == @kind and layer == @layer + 1 and head == @head + 1")
    assert set(rows.row_word[rows.query_position == row + 1]) == {word}


@cache
def pages_of(name) -> list[bytes]:
    """What a page in one file and a notebook hold of a model's heads."""
    trace = trace_of(name)
    shown = pictures.page(view_of(trace, next(iter(trace.attention)), 0, 0)).decode("utf-8")
    return [inflated(page, "run") for page in (shown, notebook.show(trace).page)]


@pytest.mark.parametrize("number", range(30))
def test_the_word_is_the_same_in_a_page_of_its_own_and_in_a_notebook(number):
    place = name, *cell = places()[number]
    for packed in pages_of(name):
        assert in_grid(packed, *cell) == word_of(*place)


def test_bertviz_has_the_word_that_all_its_heads_follow_or_both():
    trace = trace_of("en-de")
    read, following = trace.tgt.tokens, trace.next_tokens
    assert part_names.shared_row_labels(trace, "cross", [1, 2, 3]) == following
    assert part_names.shared_row_labels(trace, "encoder", [0, 1]) == trace.src.tokens
    both = [f"{a} → {b}" for a, b in zip(read, following, strict=True)]
    assert part_names.shared_row_labels(trace, "cross", [0, 1]) == both
    assert json.dumps(both[1]) in bertviz_html.page(trace, "head", "cross", [0], 0, 0)


def test_means_and_merged_words_are_labelled_by_what_is_read():
    trace = trace_of("en-de")
    for reading in (Reading(words=True), Reading(average="heads")):
        read, _ = reading.shown(trace.tgt)
        assert part_names.axes(trace, Place("cross", 1, 0), reading)[0].labels == read
    hidden = part_names.axes(trace, Place("cross", 1, 0), Reading(special="hide"))[0].labels
    assert list(hidden) == [*trace.tgt.tokens[2:], "</s>"]


def test_padding_is_called_padding_and_an_earlier_step_keeps_the_labels():
    checkpoint = load("en-de")
    padded = checkpoint.trace(TEXTS["en-de"], pad_to=20)
    words, real = padded.row_words("cross", 1, 0), len(trace_of("en-de").tgt.tokens)
    assert words[real - 1 : real + 1] == ("</s>", "<pad>") and len(words) == 20
    run = Run(trace_of("en-de").run.texts, step="16")
    assert checkpoint.trace_run(run).row_words("cross", 1, 0) == trace_of("en-de").next_tokens


@pytest.mark.parametrize("number", range(4))
def test_the_word_is_the_same_on_pages(page, number):
    place = name, kind, layer, head, row = places()[number]
    settings = dict(kind=kind, layer=layer + 1, head=head + 1, follow=f"{row + 1} ")
    page.query_params.update(model=name, source=TEXTS[name], **settings)
    page.run()
    page.switch_page("inside").run()
    assert not page.exception
    read = trace_of(name).texts_of(kind)[0].tokens
    both = escaped(f"Having read “{read[row]}”, about to write “{word_of(*place)}”")
    rows = trace_of(name).row_words(kind, layer, head)
    assert any(f"**{both}**:" in text.value for text in page.markdown) == (rows != read)
    page.session_state["at"] = "Input"
    page.run()
    assert any(f"**“{escaped(read[row])}”** enters as" in text.value for text in page.markdown)
