"""The page Attribution, without a browser."""

import numpy as np
import pytest

from headlight.app.text import formats
from headlight.model import load
from headlight.model.analysis.attribution import attribution
from headlight.model.analysis.decomposition import decomposition
from tests.app.common import components

TEXT = "A dog runs on the beach."
VIEW = "attribution"


def show(page, picture):
    return page.segmented_control(key="picture").set_value(picture).run()


def fall(page) -> dict:
    """What the waterfall shows, which is checked to add up."""
    (data,) = components(page, "headlight_waterfall")
    values = [step["value"] for step in data["steps"]]
    assert sum(values) == pytest.approx(data["total"], abs=1e-4)
    (found,) = (t.value for t in page.markdown if f", in {len(values)} steps" in t.value)
    assert formats.signed(data["total"]) in found
    asked = [answer["name"].strip() for answer in data["answers"] if answer["is_asked"]]
    assert asked and all(formats.escaped(name) in found for name in asked)
    return data


@pytest.mark.parametrize(
    "model", ["reverse", "reviews", "pre_norm, untrained", "decoder_only, untrained"]
)
def test_every_model_is_taken_apart(opened, model):
    page = opened(model, "h e l l o" if model == "reverse" else TEXT)
    assert not page.exception and not page.error
    assert bool(fall(page)["words"]) == (model != "reviews")


@pytest.mark.parametrize("asked", [{}, {"score_token": "Hund"}, {"score_against": "Katze"}])
def test_softmax_makes_the_answers_of_the_logits(opened, asked):
    data = fall(opened(score_at="2", **asked))
    en_de = load("en-de")
    logits = en_de.trace(TEXT).logits[1].astype(np.float64)
    shares = dict(
        zip(
            map(en_de.tokenizer.token, range(len(logits))),
            np.exp(logits) / np.exp(logits).sum(),
            strict=True,
        )
    )
    for answer in data["answers"]:
        assert answer["probability"] == pytest.approx(shares[answer["name"]], rel=1e-3)
    both = [name for name in (asked.get("score_token"), asked.get("score_against")) if name]
    chances = sorted(shares.values())[-4:]
    assert [a["probability"] for a in data["answers"][:4]] == pytest.approx(chances[::-1], rel=1e-3)
    assert {*both} <= {a["name"].strip("·") for a in data["answers"] if a["is_asked"]}
    if "score_against" in asked:
        first, second = (a["probability"] for a in data["answers"] if a["is_asked"])
        assert data["total"] == pytest.approx(np.log(first / second), abs=1e-3)


@pytest.mark.parametrize(
    ("settings", "row"),
    [
        ({}, 0),
        ({"follow": "4 "}, 3),
        ({"follow": "4 ", "score_at": "2"}, 1),  # the metric of an older address goes first
        ({"follow": "4 ", "kind": "encoder"}, 0),  # rows of another text
        ({"follow": "99 "}, 0),  # of a longer text
    ],
)
def test_it_opens_on_the_token_that_is_selected_in_attention(opened, settings, row):
    data = fall(opened(**{"kind": "cross"} | settings))
    assert data["row"] == row and len(data["words"]) == 7


def test_parts_and_words_are_those_of_python(opened):
    page = opened(score_at="3", score_token="Hund", kind="cross", layer="3", head="1")
    en_de = load("en-de")
    (hund,), run = en_de.tokenizer.encode("Hund").ids, en_de.run(TEXT)
    found = decomposition(en_de.model, run, 2, hund)
    values = [step["value"] for step in fall(page)["steps"]]
    assert np.allclose(values, found.values, atol=1e-5)
    words = attribution(en_de.model, run, 2, hund, (2, 0))
    show(page, "Methods compared")
    assert any(formats.escaped(words.in_words()) in text.value for text in page.markdown)


def test_of_a_few_words_there_is_no_order(opened):
    page = show(opened(source="A dog."), "Methods compared")
    assert any("too few to rank" in text.value for text in page.markdown) and not page.exception


def test_a_word_that_is_no_token_is_answered(opened):
    page = opened(score_at="2", score_token="Huntsmannsdog")
    assert any("Type a single token" in error.value for error in page.error) and not page.exception


def test_a_head_that_is_off_adds_nothing(opened):
    data = fall(opened(score_at="3", changes="cross.3.1=off"))
    (step,) = (step for step in data["steps"] if step["name"] == "cross 3.1")
    assert abs(step["value"]) <= 1e-5


def test_a_stream_that_is_patched_in_is_refused(opened):
    page = opened(other="A cat runs on the beach.", changes="decoder_residual.2=patch")
    assert not page.exception and any(
        "cannot be split into contributions" in e.value for e in page.error
    )
