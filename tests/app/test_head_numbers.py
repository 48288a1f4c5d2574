"""Every head in numbers, in the drawer of the stage."""

import pytest
from pyarrow.ipc import open_stream

from headlight.app.results.habits import head_habits
from headlight.app.state import lines as lines_module
from headlight.app.state.options import EXAMPLES, SURVEY, THIS_SENTENCE
from headlight.model import load
from headlight.model.analysis.head_metrics import HABITS, measured, nearest_names
from headlight.model.checkpoint import SHIPPED
from headlight.model.surveys.survey import FILE, Survey
from tests.app.common import unfold

TEXT = "A man in a blue shirt is standing on a ladder, cleaning a window."
VIEW = "stage"


@pytest.fixture
def numbers(opened):
    def open_with(model="en-de", **more):
        page = unfold(opened(model, **{"all_heads": "true"} | more))
        assert not page.exception
        return page

    return open_with


def table(page):
    (found,) = page.dataframe
    return found.value


@pytest.fixture(scope="module")
def survey():
    return Survey.load(SHIPPED / "en-de")


def test_one_table_for_the_sentence_or_the_examples(numbers):
    page = numbers(measured_on=THIS_SENTENCE)
    here = table(page)
    page.selectbox(key="measured_on").set_value(EXAMPLES).run()
    assert len(here) == len(table(page)) == 48
    assert not here.entropy.equals(table(page).entropy)
    for kind in ("all", "decoder"):  # rows without a choice
        assert not numbers(changes=f"{kind}=mask:diagonal", measured_on=THIS_SENTENCE).error


def test_a_model_without_examples_has_no_choice_of_them(numbers):
    page = numbers("uneven")
    assert page.selectbox(key="measured_on").options == [THIS_SENTENCE, SURVEY]
    assert len(table(page)) == 4 * (2 + 5 + 5)


def test_the_table_is_the_survey_s_with_its_intervals(numbers, survey):
    rows = table(numbers())
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


def test_the_table_opens_on_the_selected_head_and_keeps_its_order(numbers):
    page = numbers(kind="cross", layer=2, head=3)
    before = table(page)
    assert (*before.loc[0, ["attention", "layer", "head"]],) == ("cross", 2, 3)
    page.session_state["head"] = 1
    page.run()
    after = table(page)
    assert after.layer.equals(before.layer) and after["head"].equals(before["head"])
    (row,) = page.session_state["heads_table"]["selection"]["rows"]
    assert after.loc[row, "head"] == 1 and after.loc[row, "layer"] == 2


def test_changes_have_a_real_minus(numbers):
    (shown,) = numbers().dataframe
    written = open_stream(shown.proto.arrow_data.styler.display_values).read_pandas()
    texts = written["ablation, BLEU"]
    assert texts.str.startswith("−").any() and not texts.str.contains("-").any()


def test_a_model_without_a_survey_says_how_to_make_one(numbers, models):
    page = numbers("uneven")
    assert page.selectbox(key="measured_on").value == THIS_SENTENCE and len(table(page))
    page.selectbox(key="measured_on").set_value(SURVEY).run()
    assert not page.exception and len(table(page))  # of the sentence
    assert f"`headlight survey {models / 'uneven'}`" in page.info[0].value


@pytest.mark.parametrize("wrong", ["bytes", "weights"])
def test_a_survey_that_is_none_is_said_and_one_of_other_weights(numbers, models, wrong):
    file = models / "uneven" / FILE
    copied = (SHIPPED / "reverse" / FILE).read_bytes()
    file.write_bytes(b"no survey" if wrong == "bytes" else copied)
    try:
        page = numbers("uneven", measured_on=SURVEY)
        said = {"bytes": "is not a usable survey", "weights": "with other weights"}[wrong]
        assert said in page.info[0].value
    finally:
        file.unlink()
    page.run()
    assert "This model has no survey yet" in page.info[0].value


def test_the_sentences_that_show_a_head(numbers):
    where = {"kind": "encoder", "layer": 3, "head": 4}
    page = numbers(all_heads="false", clearest="true", **where)
    en_de = load("en-de")
    lines = lines_module.lines_of((SHIPPED.parent / "examples" / "en-de.txt").read_text())
    beyond = {}
    for line in [*lines, TEXT]:
        one = measured(en_de.trace(line))["encoder"]
        beyond[line] = (one.numbers["previous"] - one.uniform["previous"])[2, 3]
    assert table(page).sentence.tolist() == sorted(beyond, key=beyond.get, reverse=True)[:8]


@pytest.mark.parametrize("model", ["induction", "reviews"])
def test_every_survey_is_shown(numbers, model):
    page = numbers(model, source="a b c a b", clearest="true")
    heads, sentences = (found.value for found in page.dataframe)
    assert heads["ablation, loss, 95%"].all() and len(sentences)
    assert not page.error


def test_the_card_says_what_the_head_does_here_and_always(numbers, survey):
    page = numbers(kind="cross", layer=3, head=2)
    said = survey.in_words("cross", 2, 1)
    assert any(said in text.value for text in page.markdown)
    verdict, change = survey.importance("cross", 2, 1)
    assert any(verdict in text.value and change in text.value for text in page.caption)


# What each head does


@pytest.mark.parametrize("name", ["en-fr", "induction"])
def test_every_head_stands_once_by_what_is_lost_without_it(name):
    model, survey = load(name), Survey.load(SHIPPED / name)
    trace = model.trace("She has never seen the red car." if name == "en-fr" else "a b c a b")
    heads = head_habits(survey.measured(trace.sites), trace, survey)
    losses = [survey.head(one.kind, one.layer, one.head)["loss"]["value"] for one in heads]
    assert losses == sorted(losses, reverse=True)
    assert len({(one.kind, one.layer, one.head) for one in heads}) == len(heads)
    assert len(heads) == sum(site.n_heads for site in trace.sites)
    for one in heads:
        known = survey.head(one.kind, one.layer, one.head)
        lost = known[survey.measure]
        beyond = [known[f"{name} − random"] for name in ("zero", "mean", "resample")]
        assert one.missed == all(row["value"] > 0 and row["p_holm"] <= 0.05 for row in beyond)
        said = "".join(text for text, _ in one.finding)
        assert said.endswith("not significant.") == (lost["p_holm"] > 0.05), said
        aligned = known.get("alignment", {"value": 0})["value"]
        assert (one.habit == "align") or aligned < 0.5
        if one.habit == "align":
            assert one.caption == f"aligns {aligned:.0%}"


def test_of_one_sentence_groups_are_those_of_the_nearest_pattern():
    numbers = measured(trace := load("en-fr").trace("She has never seen the red car."))
    heads, scores = head_habits(numbers, trace), []
    for head in heads:
        nearest, *_ = nearest_names(numbers[head.kind], head.layer, head.head)
        family = {name for name, patterns in HABITS.items() if nearest.name in patterns}
        between = nearest.name == "same token" and head.kind == "cross"
        assert {head.habit} == ({"align"} if between else family if nearest.score >= 0.2 else {""})
        assert not head.missed
        scores.append(nearest.score if head.habit else 0)
    assert scores == sorted(scores, reverse=True) and len(heads) == 48
