"""What stands on top of every page."""

import pytest

from headlight.app.server import lan
from headlight.app.shell.state_strip import VISIBLE_BADGES
from headlight.app.state import catalog
from tests.app.common import output, plain_text


@pytest.fixture
def bar(page):
    page.query_params.update(model="uneven", source="the dog")
    return page.switch_page("inside").run()


def badges(page):
    return [button.key for button in page.button if button.key.startswith("badge_")]


def test_a_badge_removes_itself_and_what_it_says(bar):
    bar.toggle(key="causal").set_value(False).run()
    assert badges(bar) == ["badge_causal"]
    assert bar.button(key="badge_causal").label == "Causal mask off ×"
    bar.button(key="badge_causal").click().run()
    assert badges(bar) == [] and bar.toggle(key="causal").value is True


def test_behind_a_few_badges_the_others_are_counted(bar):
    masks = ("causal", "src_padding", "tgt_padding")
    for key in masks:
        bar.toggle(key=key).set_value(False)
    bar.number_input(key="pad_to").set_value(9)
    bar.selectbox(key="step").set_value("1000").run()
    assert len(badges(bar)) == 5
    more = [block.proto.popover.label for block in bar.get("popover")]
    assert f"+{5 - VISIBLE_BADGES} more" in more
    bar.button(key="badge_pad_to").click().run()
    assert bar.number_input(key="pad_to").value == 0 and len(badges(bar)) == 4


def test_the_output_is_edited_as_the_target(bar):
    written = bar.text_input(key="target").placeholder
    assert written and bar.text_input(key="target").value == ""
    bar.button(key="edit_target").click().run()
    assert bar.text_input(key="target").value == written
    assert badges(bar) == ["badge_target"]
    bar.button(key="badge_target").click().run()
    assert bar.text_input(key="target").value == ""
    assert bar.text_input(key="target").placeholder == written


def test_the_line_says_who_wrote_the_target(page):
    page.switch_page("inside").query_params.update(model="en-fr", source="A dog sleeps.")
    assert plain_text(output(page.run())).startswith("Model en-fr wrote: ")
    page.text_input(key="target").set_value("Un chien dort.").run()
    assert plain_text(output(page)) == "You typed: Un chien dort."
    page.toggle(key="memory_padding").set_value(False)
    assert plain_text(output(page)).startswith("You typed: ")
    page.button(key="translate_again").click().run()
    # What it wrote is in the box of the target.
    assert plain_text(output(page)).startswith("Model en-fr (with these settings) wrote: ")
    page.toggle(key="memory_padding").set_value(True).run()
    assert plain_text(output(page)).startswith("Model en-fr (with other settings) wrote: ")
    page.button(key="translate_again").click().run()
    assert plain_text(output(page)).startswith("Model en-fr wrote: ")
    page.button(key="badge_target").click().run()
    untrained = next(name for name in catalog.UNTRAINED if "vanilla" in name)
    page.selectbox(key="model").set_value(untrained).run()
    assert plain_text(output(page)).startswith("Written by model en-fr; this model only reads: ")


def test_where_changes_alter_the_translation_the_line_says_that_it_shows_the_former_one(page):
    page.query_params.update(model="en-fr", source="She has never seen the red car of my sister.")
    page.switch_page("inside").run()
    before = plain_text(output(page))
    page.text_input(key="changes").set_value("cross.4=off").run()
    after = plain_text(output(page))
    assert after.startswith("Model en-fr (as trained) wrote: Elle n'a jamais vu")
    assert before.startswith("Model en-fr wrote: Elle n'a jamais vu")
    page.button(key="use_new_translation").click().run()
    used = plain_text(output(page))
    assert used.startswith("Model en-fr (with these settings) wrote: ")
    assert used.partition(": ")[2] != before.partition(": ")[2]
    page.run()  # the menu has closed
    page.text_input(key="changes").set_value("").run()
    assert plain_text(output(page)) == used.replace("these settings", "other settings")
    page.button(key="badge_target").click().run()
    assert plain_text(output(page)) == before


def test_an_earlier_step_reads_the_final_translation_unless_it_is_let_go(page):
    page.query_params.update(model="uneven", source="the dog")
    page.run()
    final = page.text_input(key="target").placeholder
    assert "hold" not in [toggle.key for toggle in page.toggle]
    page.selectbox(key="step").set_value("10").run()
    assert page.text_input(key="target").placeholder == final
    assert "final weights" in output(page)
    page.toggle(key="hold").set_value(False).run()
    assert page.text_input(key="target").placeholder != final
    assert "final weights" not in output(page)


def target_badge(page):
    return next((b for b in page.button if b.key == "badge_target"), None)


def test_a_target_of_another_source_is_called_so_and_one_click_lets_the_model_write(bar):
    bar.text_input(key="target").set_value("der Hund").run()
    assert target_badge(bar).label == "Typed target ×"
    bar.text_area(key="source").set_value("the cat").run()
    assert target_badge(bar).label == "Target of another source ×"
    target_badge(bar).click().run()
    assert bar.text_input(key="target").value == "" and target_badge(bar) is None


def test_a_translation_decoded_with_other_masks_is_called_so(bar):
    bar.toggle(key="causal").set_value(False).run()
    bar.button(key="translate_again").click().run()
    assert target_badge(bar).label == "Translated with these settings ×"
    bar.button(key="badge_causal").click().run()
    assert target_badge(bar).label == "Translation out of date ×"
    target_badge(bar).click().run()
    assert badges(bar) == []


def test_source_and_target_are_parted_by_a_tab(bar):
    bar.text_area(key="source").set_value("the dog\tder Hund").run()
    assert bar.text_area(key="source").value == "the dog"
    assert bar.text_input(key="target").value == "der Hund"
    assert target_badge(bar).label == "Typed target ×" and not bar.exception


def test_of_several_pairs_each_line_brings_its_target(bar):
    text = "the dog\tder Hund\tCC-BY\nthe cat\na man \t ein Mann"
    bar.text_area(key="source").set_value(text).run()
    assert bar.text_area(key="source").value == "the dog\nthe cat\na man"
    for line, target in (("a man", "ein Mann"), ("the cat", ""), ("the dog", "der Hund")):
        bar.selectbox(key="line").set_value(line).run()
        assert bar.text_input(key="target").value == target
    bar.text_input(key="target").set_value("ein Tier").run()
    bar.selectbox(key="line").set_value("a man").run()
    assert bar.text_input(key="target").value == "ein Tier"
    assert target_badge(bar).label == "Target of another source ×"


def test_of_pairs_with_one_source_the_last_is_kept_and_it_is_said(bar):
    bar.text_area(key="source").set_value("the dog\tder Hund\nthe dog\tein Hund").run()
    assert bar.text_input(key="target").value == "ein Hund"
    assert any("1 pasted pair was left out" in info.value for info in bar.info)
    bar.text_area(key="source").set_value("the cat").run()
    assert not any("left out" in info.value for info in bar.info)


def test_what_is_pasted_below_leaves_the_target_that_was_typed(bar):
    bar.text_input(key="target").set_value("der Hund").run()
    bar.text_area(key="source").set_value("the dog\nthe cat\tdie Katze").run()
    assert bar.text_area(key="source").value == "the dog\nthe cat"
    assert bar.text_input(key="target").value == "der Hund"
    bar.selectbox(key="line").set_value("the cat").run()
    assert not bar.exception


def test_padding_behind_a_decoders_text_is_not_its_answer(page):
    def answer():
        (told,) = (t.value for t in page.markdown if t.value.startswith("**Next token:** "))
        return told.removeprefix("**Next token:** ")

    page.query_params.update(model="induction", source="a b c d a b")
    page.run()
    assert answer().startswith("c\\,")
    page.number_input(key="pad_to").set_value(20).run()
    assert not page.exception and answer().startswith("c\\,")


def test_a_line_that_is_gone_is_read_no_more(bar):
    bar.text_area(key="source").set_value("the dog\nthe cat\na man").run()
    bar.selectbox(key="line").set_value("the cat").run()
    bar.text_area(key="source").set_value("the dog\nthe bird\na man").run()
    assert bar.selectbox(key="line").value == "the dog"
    bar.text_area(key="source").set_value("the bird").run()
    assert "line" not in [box.key for box in bar.selectbox] and not bar.exception


def test_the_address_of_a_class_stands_under_more_where_one_is_served(page, monkeypatch):
    page.session_state["more"] = True
    address = "http://192.168.1.20:8501"
    assert not any(address in said.value for said in page.run().markdown)
    monkeypatch.setenv(lan.ADDRESS, address)
    page.run()
    assert any(address in said.value for said in page.markdown)
    (picture,) = page.image
    assert picture.value[0].startswith("data:image/svg+xml")
    assert not page.exception


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("uneven", None),
        ("classifier", None),
        ("paper, untrained", "has random weights"),
        ("broken", "Live page: "),
    ],
)
def test_share_offers_a_live_page_or_says_why_not(page, model, sentence):
    page.query_params.update(model=model, source="the dog")
    page.session_state["share"] = True
    page.run()
    labels = [button.label for button in page.download_button]
    assert ("Live page" in labels) == (sentence is None)
    assert any((sentence or "") in caption.value for caption in page.caption)
    assert not page.exception
