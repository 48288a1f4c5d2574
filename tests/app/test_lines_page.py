"""The page Lines, without a browser."""

import json

import numpy as np
import pytest

from headlight.model import load
from headlight.model.masks import Masks

TEXT = "A dog runs on the beach."
VIEW = "lines"
LEAST = 5  # percent, as shown


def drawn(page) -> dict:
    (data,) = (
        json.loads(element.proto.json)
        for element in page.main
        if element.type == "bidi_component" and "word_lines" in element.proto.component_name
    )
    return data


def expected(weights) -> list[list[int]]:
    return sorted(
        [int(key), int(query)] for query, key in np.argwhere(np.rint(100 * weights) >= LEAST)
    )


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_every_weight_of_five_percent_is_a_line(opened, kind):
    page = opened(kind=kind, layer="2", head="3")
    trace = load("en-de").trace(TEXT)
    data, weights = drawn(page), trace.attention[kind][1, 2]
    assert data["links"] == expected(weights) and not data["before"]
    query, key = trace.texts_of(kind)
    shift = kind != "encoder" and trace.shift(kind, 1, 2)  # rows by the word that the head follows
    rows = trace.next_tokens if shift else query.tokens
    assert data["words"] == [list(key.tokens), list(rows)]
    assert np.allclose(data["weights"], weights, atol=0.0005)
    both = zip(query.tokens, trace.next_tokens, strict=True) if kind != "encoder" else ()
    assert data["moments"] == [f"Having read “{a}”, about to write “{b}”" for a, b in both]


@pytest.mark.parametrize(
    ("compared", "dashed"),
    [
        ({}, "lines that were there before the changes"),
        ({"other_masks": "true"}, "lines that only the comparison has"),
    ],
)
def test_lines_that_a_mask_made_or_took_are_told_apart(opened, compared, dashed):
    data = drawn(opened(kind="decoder", layer="1", head="1", causal="false", **compared))
    en_de = load("en-de")
    before = en_de.trace(TEXT)
    target = before.texts_of("decoder")[0].ids
    after = en_de.trace(TEXT, masks=Masks(causal=False))
    assert data["links"] == expected(after.attention["decoder"][0, 0])
    gone = expected(before.attention["decoder"][0, 0])
    assert data["before"] == [link for link in gone if link not in data["links"]]
    assert data["note"].endswith(f" Dashed: {dashed}.")
    assert len(target) == len(data["words"][1])


def test_a_mean_over_heads_is_what_display_asks_for(opened):
    data = drawn(opened(kind="encoder", layer="2", head="3", average="heads"))
    weights = load("en-de").trace(TEXT).attention["encoder"][1].mean(axis=0)
    assert data["links"] == expected(weights)


def test_a_text_with_too_many_tokens_says_so(opened):
    page = opened(source="dog " * 300)
    assert any("256 tokens" in info.value for info in page.info) and not page.exception


@pytest.mark.parametrize("source", ["", "   ", "."])
def test_hardly_any_text_breaks_nothing(opened, source):
    assert not opened(source=source).exception
