"""The page Generate, without a browser."""

import numpy as np
import pytest

from headlight.app.components import generation as component
from headlight.model import load

TEXT = "A dog runs on the beach."
VIEW = "generate"


def said(page):
    return " ".join(text.value for text in page.markdown)


def test_a_classifier_says_why_not(opened):
    page = opened("reviews")
    assert any("writes no text" in error.value for error in page.info) and not page.exception


@pytest.mark.parametrize(
    ("beginning", "why"), [("ein Hund", "not a list of"), ("999999", "not a list of")]
)
def test_a_beginning_that_is_none_is_answered_and_kept(opened, beginning, why):
    page = opened(beginning=beginning)
    assert any(why in error.value for error in page.error) and not page.exception
    assert page.settings["beginning"] == beginning


def test_a_beginning_longer_than_the_room_is_answered(opened):
    page = opened(beginning="-".join(["12"] * 900))
    assert any("there is room for" in error.value for error in page.error) and not page.exception


def test_beside_the_changes_stands_the_model_as_it_is_and_where_they_part(opened):
    page = opened(changes="cross=off")
    en_de = load("en-de")
    now, plain = (en_de.generate(en_de.run(TEXT, changes=line)) for line in ("cross=off", ""))
    at = next(i for i, (a, b) in enumerate(zip(now.tokens, plain.tokens, strict=False)) if a != b)
    assert "**Before the changes**" in said(page) and f"they diverge at token {at + 1}" in said(
        page
    )
    page.text_input(key="changes").set_value("").run()
    assert "they diverge" not in said(page) and not page.exception


def test_strips_are_explained(opened):
    page = opened()
    assert "Each **strip** is one head" in said(page)
    assert any("weight 0%" in html.proto.body for html in page.get("html"))


@pytest.mark.parametrize("decoding", ["Greedy", "Beam search"])
def test_the_dot_of_a_continued_word_is_explained_where_there_is_one(opened, decoding):
    page = opened(model="en-de", source="Grandmother laughs.", decoding=decoding)
    assert " continues the word before it." in said(page)
    page.text_area(key="source").set_value("A dog runs.").run()
    assert "continues the word" not in said(page)


def test_so_many_branches_are_written_and_no_more(page, monkeypatch):
    from headlight.app.results.shown import Shown

    written, make = set(), Shown.generation
    monkeypatch.setattr(
        Shown, "generation",
        lambda shown, how, beginning=(): written.add(beginning) or make(shown, how, beginning),
    )  # fmt: skip
    names = "; ".join(str(i) for i in range(300, 340))
    page.query_params.update(model="en-de", source="A dog.", branches=names, beginning="339")
    page.run()
    page.switch_page("generate").run()
    assert not page.exception and (339,) in written and len(written) <= 12
    assert any("Only 12 of 41 branches are shown" in info.value for info in page.info)


def test_weights_are_sent_as_one_text_however_many_they_are(monkeypatch):
    """A list of millions of numbers is made and written at one go, and all other threads wait."""
    sent = []
    monkeypatch.setattr(component, "_mount", lambda data, **other: sent.append(data["rows"]))

    def count(value) -> int:
        if isinstance(value, dict | list):
            return sum(map(count, value.values() if isinstance(value, dict) else value))
        return 1

    for shape in ((2, 1, 1, 3), (3, 2, 40, 50)):
        weights = np.random.default_rng(0).random(shape).transpose(0, 2, 1, 3)
        rows = component.Rows("", [], [], [], weights)
        callbacks = dict.fromkeys(("on_choose", "on_focus", "on_branch"))
        component.generation("", 0, "", [], [], [], rows, {}, [], [], [], **callbacks)
    few, many = map(count, sent)
    assert few == many


def test_without_the_causal_mask_it_is_said_what_looks_ahead(opened):
    page = opened(causal="false")
    assert "complete text" in said(page)
    page.toggle(key="causal").set_value(True).run()
    assert "complete text" not in said(page)
