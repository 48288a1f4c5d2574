"""The page Heads without a browser."""

import re

import numpy as np
import pytest
from pyarrow.ipc import open_stream

from headlight.app.state import lines as lines_module
from headlight.app.state.options import (
    EXAMPLES,
    SCATTER,
    SELECTED,
    SENTENCES,
    SURVEY,
    THIS_SENTENCE,
)
from headlight.app.text import head_card
from headlight.app.views import _head_table
from headlight.model import load
from headlight.model.analysis.head_metrics import RULES, THRESHOLD, heads_with, measured
from headlight.model.checkpoint import SHIPPED
from headlight.model.surveys.survey import FILE, Survey

SENTENCE = "A man in a blue shirt is standing on a ladder, cleaning a window."


@pytest.fixture
def heads(page):
    return opened(page, measured_on=THIS_SENTENCE)


def opened(page, model="en-de", **more):
    page.query_params.update(model=model, source=SENTENCE, **{"all_heads": "true"} | more)
    page.switch_page("heads").run()
    assert not page.exception
    return page


def table(page):
    (found,) = page.dataframe
    return found.value


def listed(page):
    return set(zip(*(table(page)[name] for name in ("attention", "layer", "head")), strict=True))


def test_one_table_for_the_sentence_or_the_examples(heads):
    here = table(heads)
    heads.selectbox(key="measured_on").set_value(EXAMPLES).run()
    over = table(heads)
    assert len(here) == len(over) == 48
    assert not here.entropy.equals(over.entropy)
    assert here.weights.equals(over.weights) and here.weights.nunique() == 48


@pytest.mark.parametrize("changes", ["all=mask:diagonal", "decoder=mask:diagonal"])
def test_where_rows_have_no_choice_there_is_no_point(page, changes):
    found = opened(page, changes=changes, heads_as="Scatter", across="nearest, match",
                   measured_on=THIS_SENTENCE)  # fmt: skip
    assert not found.error


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
    score = table(heads)[_head_table.SCORE]
    assert score.is_monotonic_decreasing
    if wanted:
        assert listed(heads) == wanted and score.min() >= 100 * THRESHOLD
    else:  # those that come nearest, with the threshold that they miss
        best = max(np.nan_to_num(one[pattern]).max() for one in scores.values() if pattern in one)
        assert len(score) == 3 and score[0] == pytest.approx(100 * best)
        assert any(f"No head reaches 40% for “{pattern}”" in text.value for text in heads.caption)


def test_a_head_that_is_left_out_keeps_its_card(heads):
    heads.segmented_control(key="kind").set_value("cross").run()
    heads.selectbox(key="pattern").set_value("previous token").run()
    assert any("is not in the table" in text.value for text in heads.caption)
    assert any("Cross-attention, layer 1, head 2" in text.value for text in heads.markdown)
    heads.selectbox(key="pattern").set_value("any").run()
    assert not any("is not in the table" in text.value for text in heads.caption)


def test_head_pattern_and_effect_come_before_pictures_and_numbers(page):
    page = opened(page, "en-fr")
    columns = [*table(page).columns]
    first = ["attention", "layer", "head", "named", "nearest", "nearest, match"]
    assert columns[: len(first)] == first
    assert columns[len(first)].startswith("ablation")
    assert columns.index("weights") < columns.index("second") < columns.index("entropy")
    page.selectbox(key="pattern").set_value("previous token").run()
    assert [*table(page).columns][3] == "match"


@pytest.mark.parametrize(
    ("view", "key"), [("heads", "heads_table"), ("ablation", "effects_table"),
                      ("alignment", "alignment_table")]
)  # fmt: skip
def test_tables_tick_the_row_of_the_selected_head(page, view, key):
    page = opened(page)
    page.switch_page(view).run()
    if view == "alignment":
        page.selectbox(key="aligned_by").set_value(SELECTED)
    ticked = set()
    for head in (2, 3):
        page.session_state["kind"], page.session_state["layer"] = "cross", 3
        page.session_state["head"] = head
        page.run()
        (row,) = page.session_state[key]["selection"]["rows"]
        ticked.add(row)
        shown = table(page).iloc[row]
        if view in ("heads", "alignment"):
            assert (shown["layer"], shown["head"]) == (3, head)
            assert shown.get("attention", "cross") == "cross"
        else:
            assert re.search(rf"(?i)^cross[a-z-]* 3\.{head}$", shown["part"]), shown
    assert len(ticked) == 2


def test_the_filter_stays_from_page_to_page(heads):
    heads.selectbox(key="pattern").set_value("previous token").run()
    heads.switch_page("attention").run()
    heads.switch_page("heads").run()
    assert heads.selectbox(key="pattern").value == "previous token"
    assert 0 < len(table(heads)) < 48


def test_a_model_without_examples_has_no_choice_of_them(heads):
    heads.selectbox(key="model").set_value("uneven").run()
    assert not heads.exception
    assert heads.selectbox(key="measured_on").options == [THIS_SENTENCE, SURVEY]
    assert len(table(heads)) == 4 * (2 + 5 + 5)


def test_the_card_says_which_rows_have_one_key_alone(heads):
    heads.segmented_control(key="kind").set_value("decoder").run()
    (card,) = (text.value for text in heads.markdown if "Entropy" in text.value)
    assert "Row “\\<s\\>” " in card and "only one visible key" in card
    heads.segmented_control(key="kind").set_value("encoder").run()
    assert not any("only one visible key" in text.value for text in heads.markdown)


# Over a survey


@pytest.fixture(scope="module")
def survey():
    return Survey.load(SHIPPED / "en-de")


def test_the_table_is_the_survey_s_with_its_intervals(page, survey):
    rows = table(opened(page))
    assert len(rows) == 48
    for row in rows.to_dict("records"):
        known = survey.head(row["attention"], row["layer"] - 1, row["head"] - 1)
        lost = known["bleu"]
        assert row["ablation, BLEU"] == lost["value"] and row["ablation, BLEU, p"] == lost["p_holm"]
        ends = f"{lost['low']:.2f} to {lost['high']:.2f}".replace("-", "−")
        assert row["ablation, BLEU, 95%"] == ends.replace("−0.00", "0.00")
        assert row["entropy"] == known["entropy"]["value"]
        first = known["first"]
        assert row["first"] == 100 * first["value"]
        assert row["first, 95%"] == f"{100 * first['low']:.0f} to {100 * first['high']:.0f}"
        assert ("next" in known) == (row["next"] == row["next"])  # not NaN
    named = rows[rows.named == "previous token"]
    assert set(zip(named.attention, named.layer, named["head"], strict=True)) == {
        (site.kind, site.layer + 1, head + 1)
        for site in load("en-de").model.sites()
        for head in range(site.n_heads)
        if "previous token" in [n.name for n in survey.names(site.kind, site.layer, head)]
    }


def test_the_filter_is_of_the_survey(page, survey):
    page = opened(page, pattern="previous token")
    scores = survey.measured(load("en-de").model.sites())
    wanted = {
        (kind, layer + 1, head + 1)
        for kind, one in scores.items()
        if "previous token" in one.scores
        for layer, head in np.argwhere(one.scores["previous token"] >= THRESHOLD).tolist()
    }
    assert listed(page) == wanted and wanted


def test_what_aligns_words_is_known_from_the_survey_alone(page, survey):
    page = opened(page, pattern="alignment")
    wanted = {
        (kind, layer, head)
        for kind, layer, head in listed(opened(page, pattern="any"))
        if survey.head(kind, layer - 1, head - 1).get("alignment", {"value": 0})["value"] >= 0.5
    }
    page.selectbox(key="pattern").set_value("alignment").run()
    assert listed(page) == wanted and wanted
    assert table(page)[_head_table.SCORE].is_monotonic_decreasing
    page.selectbox(key="measured_on").set_value(THIS_SENTENCE).run()
    assert any("choose “Survey” above" in text.value for text in page.info)


def test_the_table_opens_on_the_selected_head_and_keeps_its_order(page):
    page = opened(page, kind="cross", layer=2, head=3)
    before = table(page)
    assert (*before.loc[0, ["attention", "layer", "head"]],) == ("cross", 2, 3)
    page.segmented_control(key="head").set_value(1).run()
    after = table(page)
    assert after.layer.equals(before.layer) and after["head"].equals(before["head"])


def test_changes_have_a_real_minus(page):
    (shown,) = opened(page).dataframe
    written = open_stream(shown.proto.arrow_data.styler.display_values).read_pandas()
    texts = written["ablation, BLEU"]
    assert texts.str.startswith("−").any() and not texts.str.contains("-").any()


def test_what_is_changed_is_not_in_a_survey(page):
    said = "Your current changes are not included."
    page = opened(page)
    assert not any(said in caption.value for caption in page.caption)
    page.text_input(key="changes").set_value("cross.1.1=off").run()
    assert any(said in caption.value for caption in page.caption)


def test_a_model_without_a_survey_says_how_to_make_one(page, models):
    page = opened(page, "uneven")
    assert page.selectbox(key="measured_on").value == THIS_SENTENCE and len(table(page))
    page.selectbox(key="measured_on").set_value(SURVEY).run()
    assert not page.exception and len(table(page))  # of the sentence
    assert f"`headlight survey {models / 'uneven'}`" in page.info[0].value
    page.selectbox(key="step").set_value("10").run()
    assert "not those of training step 10" in page.info[0].value
    page.selectbox(key="model").set_value("paper, untrained").run()
    assert "random" in page.info[0].value and not page.exception


@pytest.mark.parametrize("wrong", ["bytes", "weights"])
def test_a_survey_that_is_none_is_said_and_one_of_other_weights(page, models, wrong):
    file = models / "uneven" / FILE
    copied = (SHIPPED / "reverse" / FILE).read_bytes()
    file.write_bytes(b"no survey" if wrong == "bytes" else copied)
    try:
        page = opened(page, "uneven", measured_on=SURVEY)
        said = {"bytes": "is not a usable survey", "weights": "with other weights"}[wrong]
        assert said in page.info[0].value
    finally:
        file.unlink()
    page.run()
    assert "This model has no survey yet" in page.info[0].value


def test_any_two_numbers_over_each_other(page, survey):
    page = opened(page, heads_as=SCATTER, kind="encoder", layer="3", head="4")
    assert page.selectbox(key="up").value == "ablation, BLEU"
    assert page.selectbox(key="across").value == "entropy" and page.get("plotly_chart")
    page.selectbox(key="up").set_value("the diagonal").run()
    assert not page.exception and page.get("plotly_chart")
    page.selectbox(key="measured_on").set_value(THIS_SENTENCE).run()
    assert page.selectbox(key="up").value == "the diagonal" and not page.exception
    assert head_card.INTERVAL not in str(page.selectbox(key="up").options)


def test_the_sentences_that_show_a_head(page):
    page = opened(page, heads_as=SENTENCES, kind="encoder", layer="3", head="4")
    rows = table(page)
    en_de = load("en-de")
    lines = lines_module.lines_of((SHIPPED.parent / "examples" / "en-de.txt").read_text())
    beyond = {}
    for line in [*lines, SENTENCE]:
        one = measured(en_de.trace(line))["encoder"]
        beyond[line] = (one.numbers["previous"] - one.uniform["previous"])[2, 3]
    assert rows.sentence.tolist() == sorted(beyond, key=beyond.get, reverse=True)[:8]
    assert rows.weights.nunique() == 8
    own = "Two dogs are playing with a ball in the snow."
    page.text_area(key="source").set_value(f"Go\n\n{own}").run()
    assert own in table(page).sentence.tolist()
    page.selectbox(key="model").set_value("reviews").run()
    assert not page.exception


@pytest.mark.parametrize("model", ["induction", "reviews"])
def test_every_survey_is_shown_in_every_way(page, model):
    page.query_params.update(model=model, all_heads="true")
    page.switch_page("heads").run()
    assert page.selectbox(key="measured_on").value == SURVEY
    assert "ablation, loss, 95%" in table(page) and table(page)["ablation, loss, 95%"].all()
    for way in (SCATTER, SENTENCES):
        page.segmented_control(key="heads_as").set_value(way).run()
        assert not any("sort by entropy" in text.value for text in page.markdown)
        assert not page.exception and not page.error
        assert page.get("plotly_chart") if way == SCATTER else len(table(page))


def test_a_head_in_one_sentence_and_always(page, survey):
    page = opened(page, kind="cross", layer="3", head="2")
    verdict, change = survey.importance("cross", 2, 1)
    for view in ("attention", "inside", "compare"):
        page.switch_page(view).run()
        (answer,) = [text for text in page.caption if verdict in text.value]
        assert change in (answer.help or answer.value), view
    said = survey.in_words("cross", 2, 1)
    for view in ("heads", "attention"):
        page.switch_page(view).run()
        assert any(said in text.value for text in page.markdown), view
    page.selectbox(key="model").set_value("en-fr").run()
    assert any("always behave like this?" in text.value for text in page.markdown)
    page.selectbox(key="step").set_value("256").run()
    assert not any("always behave like this?" in text.value for text in page.markdown)


def test_any_pattern_is_every_head():
    found = heads_with(measured(load("copy").trace("a b c d")))
    assert sum(map(len, found.values())) == 12
