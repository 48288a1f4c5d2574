"""The page Attribution, without a browser."""

import numpy as np
import pytest

from headlight.app.text import formats
from headlight.model import load
from headlight.model.analysis.attribution import attribution
from headlight.model.analysis.decomposition import decomposition

TEXT = "A dog runs on the beach."
VIEW = "attribution"


def show(page, picture):
    return page.segmented_control(key="picture").set_value(picture).run()


def finding(page):
    (text,) = (t.value for t in page.markdown if t.value.startswith("What adds up to the logit"))
    return text


@pytest.mark.parametrize(
    "model", ["reverse", "reviews", "pre_norm, untrained", "decoder_only, untrained"]
)
def test_every_model_is_taken_apart(opened, model):
    page = opened(model, "h e l l o" if model == "reverse" else TEXT)
    assert not page.exception and not page.error
    terms = page.dataframe[0].value
    logit = float(finding(page).rpartition(" ")[2].replace("−", "-"))
    assert terms["contribution"].sum() == pytest.approx(logit, abs=0.006)


def test_parts_and_words_are_those_of_python(opened):
    page = opened(score_at="3", score_token="Hund", kind="cross", layer="3", head="1")
    en_de = load("en-de")
    (hund,), run = en_de.tokenizer.encode("Hund").ids, en_de.run(TEXT)
    found = decomposition(en_de.model, run, 2, hund)
    terms = page.dataframe[0].value
    values = [value for _, value in found.largest()]
    assert np.allclose(terms["contribution"], values, atol=1e-5)
    words = attribution(en_de.model, run, 2, hund, (2, 0))
    assert "“Hund”" in finding(page)
    show(page, "Source words")
    assert any(formats.escaped(words.in_words()) in text.value for text in page.markdown)


def test_of_a_few_words_there_is_no_order(opened):
    page = show(opened(source="A dog."), "Source words")
    assert any("too few to rank" in text.value for text in page.markdown) and not page.exception


def test_a_word_that_is_no_token_is_answered(opened):
    page = opened(score_at="2", score_token="Huntsmannsdog")
    assert any("Type a single token" in error.value for error in page.error) and not page.exception


def test_a_head_that_is_off_adds_nothing(opened):
    terms = opened(score_at="3", changes="cross.3.1=off").dataframe[0].value
    assert terms.loc[terms["part"] == "cross 3.1", "contribution"].abs().max() <= 1e-5


def test_a_stream_that_is_patched_in_is_refused(opened):
    page = opened(other="A cat runs on the beach.", changes="decoder_residual.2=patch")
    assert not page.exception and any(
        "cannot be split into contributions" in e.value for e in page.error
    )
    page.switch_page("residual").run()  # where all else is shown
    assert not page.exception and not page.error and len(page.dataframe)
    show(page, "Who writes it")
    assert any("cannot be split into contributions" in error.value for error in page.error)
