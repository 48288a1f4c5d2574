"""The page Heads without a browser."""

import numpy as np
import pytest

from app import labels
from app.settings import EXAMPLES
from model import load
from model.analysis.head_metrics import RULES, THRESHOLD, heads_with, measured

SENTENCE = "A man in a blue shirt is standing on a ladder, cleaning a window."


@pytest.fixture
def heads(page):
    page.query_params.update(model="en-de", source=SENTENCE)
    page.run()
    page.switch_page("views/heads.py").run()
    assert not page.exception
    return page


def table(page):
    (found,) = page.dataframe
    return found.value


def listed(page):
    return set(zip(*(table(page)[name] for name in ("attention", "layer", "head")), strict=True))


def test_one_table_for_the_sentence_or_the_examples(heads):
    here = table(heads)
    heads.segmented_control(key="measured_on").set_value(EXAMPLES).run()
    over = table(heads)
    assert len(here) == len(over) == 48
    assert not here.entropy.equals(over.entropy)
    assert here.weights.equals(over.weights) and here.weights.nunique() == 48


@pytest.mark.parametrize("pattern", RULES)
def test_the_filter_leaves_the_heads_that_have_the_pattern(heads, pattern):
    heads.selectbox(key="pattern").set_value(pattern).run()
    assert not heads.exception
    scores = {kind: one.scores for kind, one in measured(load("en-de").trace(SENTENCE)).items()}
    wanted = {
        (kind, layer + 1, head + 1)
        for kind in scores
        if pattern in scores[kind]
        for layer, head in np.argwhere(scores[kind][pattern] >= THRESHOLD).tolist()
    }
    if not wanted:
        assert not heads.dataframe and pattern in heads.info[0].value
        return
    assert listed(heads) == wanted
    score = table(heads)[labels.SCORE]
    assert score.is_monotonic_decreasing and score.min() >= 100 * THRESHOLD


def test_a_head_that_is_left_out_keeps_its_card(heads):
    heads.segmented_control(key="kind").set_value("cross").run()
    heads.selectbox(key="pattern").set_value("previous token").run()
    assert any("Not in the table" in caption.value for caption in heads.caption)
    assert any("Cross-attention, layer 1, head 2" in text.value for text in heads.markdown)
    heads.selectbox(key="pattern").set_value("any").run()
    assert not any("Not in the table" in caption.value for caption in heads.caption)


def test_the_filter_stays_from_page_to_page(heads):
    heads.selectbox(key="pattern").set_value("previous token").run()
    heads.switch_page("views/attention.py").run()
    heads.switch_page("views/heads.py").run()
    assert heads.selectbox(key="pattern").value == "previous token"
    assert 0 < len(table(heads)) < 48


def test_a_model_without_examples_has_no_choice_of_sentences(heads):
    heads.selectbox(key="model").set_value("uneven").run()
    assert not heads.exception
    assert [c.key for c in heads.segmented_control if c.key == "measured_on"] == []
    assert len(table(heads)) == 4 * (2 + 5 + 5)


def test_the_card_says_which_rows_have_one_key_alone(heads):
    heads.segmented_control(key="kind").set_value("decoder").run()
    (card,) = (text.value for text in heads.markdown if "Entropy" in text.value)
    assert "Row “\\<s\\>” " in card and card.endswith("only one key is visible.")
    heads.segmented_control(key="kind").set_value("encoder").run()
    assert not any("only one key" in text.value for text in heads.markdown)


def test_any_pattern_is_every_head():
    found = heads_with(measured(load("copy").trace("a b c d")))
    assert sum(map(len, found.values())) == 12
